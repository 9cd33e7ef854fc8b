//! Which tools a task needs, by its service and its words. TF-33 to TF-40

use config::tasks::TaskPattern;

/// A tool that a task needs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub server: String,
    pub tool: String,
    pub why: String,
}

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct Task {
    pub service: String,
    pub description: String,
}

/// Words that a rule looks for, and what it adds for which reason.
struct Rule {
    /// In the name of the service too, or in the description only.
    by_service: bool,
    words: &'static [&'static str],
    tools: &'static [(&'static str, &'static str)],
    why: &'static str,
}

/// What every task needs.
const BASE: [(&str, &str); 5] = [
    ("github", "get_file_contents"),
    ("taskmaster", "get_tasks"),
    ("taskmaster", "add_task"),
    ("filesystem", "read_file"),
    ("filesystem", "write_file"),
];

const RULES: [Rule; 5] = [
    Rule {
        by_service: true,
        words: &["api", "service", "backend", "endpoint"],
        tools: &[
            ("github", "create_pull_request"),
            ("github", "create_branch"),
            ("filesystem", "list_directory"),
            ("filesystem", "create_directory"),
        ],
        why: "work on an API or service",
    },
    Rule {
        by_service: true,
        words: &["frontend", "ui", "web"],
        tools: &[("github", "create_pull_request")],
        why: "work on a user interface",
    },
    Rule {
        by_service: true,
        words: &["test", "qa"],
        tools: &[("taskmaster", "update_task_status")],
        why: "tests report their status",
    },
    Rule {
        by_service: false,
        words: &["deploy", "release", "rollout", "ci", "cd"],
        tools: &[
            ("github", "list_workflows"),
            ("github", "run_workflow"),
            ("github", "get_workflow_run"),
        ],
        why: "deployment runs workflows",
    },
    Rule {
        by_service: false,
        words: &["document", "docs", "readme", "guide"],
        tools: &[
            ("filesystem", "search_files"),
            ("filesystem", "edit_file"),
            ("github", "search_code"),
        ],
        why: "documentation is searched and edited",
    },
];

/// What a task needs by the rules that are built in and those of a file, each tool once.
pub fn needs(task: &Task, patterns: &[TaskPattern]) -> Vec<Need> {
    let mut needs = Needs::default();
    for (server, tool) in BASE {
        needs.add(server, tool, "every task");
    }
    let all = format!("{} {}", task.service, task.description);
    for rule in &RULES {
        let text = if rule.by_service { &all } else { &task.description };
        if let Some(word) = rule.words.iter().find(|word| mentions(text, word)) {
            for (server, tool) in rule.tools {
                needs.add(server, tool, &format!("{} (`{word}`)", rule.why));
            }
        }
    }
    for pattern in patterns {
        if let Some(word) = pattern.keywords.iter().find(|word| mentions(&all, word)) {
            for (server, tools) in &pattern.tools {
                for tool in tools {
                    needs.add(server, tool, &format!("pattern `{}` (`{word}`)", pattern.name));
                }
            }
        }
    }
    needs.0
}

#[derive(Default)]
struct Needs(Vec<Need>);

impl Needs {
    fn add(&mut self, server: &str, tool: &str, why: &str) {
        let known = self.0.iter_mut().find(|need| need.server == server && need.tool == tool);
        match known {
            Some(need) => need.why += &format!("; {why}"),
            None => self.0.push(Need {
                server: server.to_owned(),
                tool: tool.to_owned(),
                why: why.to_owned(),
            }),
        }
    }
}

/// Whether a text has a word; a longer word may begin with it: `test` is in `testing`.
fn mentions(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    if word.contains(|c: char| !c.is_alphanumeric()) {
        return text.contains(&word);
    }
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|found| found == word || word.len() >= 4 && found.starts_with(&word))
}

#[cfg(test)]
mod tests {
    use config::tasks::TaskPattern;

    use super::{Task, needs};

    /// The tools beyond those of every task, by server.
    #[track_caller]
    fn check(service: &str, description: &str, expected: &[&str]) {
        let task = Task { service: service.into(), description: description.into() };
        let pattern = TaskPattern {
            name: "data".into(),
            keywords: vec!["report".into()],
            tools: vec![("sqlite".into(), vec!["query".into()])],
        };
        let needs = needs(&task, &[pattern]);
        let base: Vec<_> = needs[..5].iter().map(|need| need.tool.as_str()).collect();
        // TF-34
        let always = ["get_file_contents", "get_tasks", "add_task", "read_file", "write_file"];
        assert_eq!(base, always);
        let found: Vec<_> =
            needs[5..].iter().map(|need| format!("{}:{}", need.server, need.tool)).collect();
        assert_eq!(found, expected, "{service} {description}");
    }

    #[test]
    fn service_and_words_of_a_task_add_what_it_needs() {
        // TF-33, TF-35, TF-36, TF-37, TF-38, TF-39, TF-40
        check("blog", "write a poem", &[]);
        let api = [
            "github:create_pull_request",
            "github:create_branch",
            "filesystem:list_directory",
            "filesystem:create_directory",
        ];
        check("user-api", "add a field", &api);
        check("web-ui", "a blue button", &["github:create_pull_request"]);
        check("qa-bot", "look around", &["taskmaster:update_task_status"]);
        check("blog", "Testing the poem", &["taskmaster:update_task_status"]);
        let ci = ["github:list_workflows", "github:run_workflow", "github:get_workflow_run"];
        check("blog", "Deployment to production", &ci);
        let docs = ["filesystem:search_files", "filesystem:edit_file", "github:search_code"];
        check("blog", "write the documentation", &docs);
        check("blog", "a weekly report", &["sqlite:query"]);
        check("capital", "decide and quit", &[]);
    }
}
