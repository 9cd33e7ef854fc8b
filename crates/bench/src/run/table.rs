//! The results as tables in Markdown, which can be read in a terminal as well.

use super::results::{Results, Row, Still, Work};
use crate::figures::Middle;

/// The whole report.
pub fn all(results: &Results) -> String {
    let mut text = format!(
        "# Benchmark\n\n{}; median of {} rounds of {} s, ± half of the distance between the extremes\n",
        results.machine, results.rounds, results.seconds
    );
    for one in &results.works {
        text += &work(one);
    }
    if !results.still.is_empty() {
        text += &still(&results.still);
    }
    text
}

/// One work, a line for each contestant.
pub fn work(work: &Work) -> String {
    let head = [
        "",
        "per second",
        "p50 µs",
        "p99 µs",
        "own CPU µs",
        "upstream requests",
        "children",
        "failures",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in &work.rows {
        lines.push(line(row));
    }
    let notes: String = work.rows.iter().filter_map(note).collect();
    format!("\n## {}: {}\n\n{}{notes}", work.letter, work.title, aligned(&lines))
}

fn line(row: &Row) -> Vec<String> {
    let requests = row.upstream_requests.map(|requests| format!("{requests:.2}"));
    vec![
        row.name.clone(),
        with_spread(row.per_second),
        with_spread(row.p50_us),
        with_spread(row.p99_us),
        with_spread(row.cpu_us),
        requests.unwrap_or_default(),
        row.children.map_or(String::new(), |children| children.to_string()),
        (row.wrong + row.swapped + row.lost).to_string(),
    ]
}

/// What does not fit into a line.
fn note(row: &Row) -> Option<String> {
    let mut notes = Vec::new();
    if let Some((before, after)) = row.memory_kib {
        notes.push(format!("memory {before} KiB before, {after} KiB with the sessions"));
    }
    if let Some(more) = row.more_us {
        notes.push(format!("a call costs {more:.0} µs more than in process"));
    }
    if let Some(memory) = row.worker_kib {
        notes.push(format!("an idle worker has {:.0} KiB", memory.median));
    }
    if row.wrong + row.swapped + row.lost > 0 {
        notes.push(format!("{} wrong, {} swapped, {} lost", row.wrong, row.swapped, row.lost));
    }
    if let Some(complaint) = &row.complaint {
        notes.push(format!("said: {}", complaint.lines().next().unwrap_or_default()));
    }
    (!notes.is_empty()).then(|| format!("\n- {}: {}", row.name, notes.join("; ")) + "\n")
}

/// The figures that are counted.
pub fn still(still: &[Still]) -> String {
    let head = [
        "",
        "idle KiB, 1000 tools",
        "binary bytes",
        "instructions a call",
        "the same, stdio upstream",
        "system calls a call, alone",
        "the same, 64 at once",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for one in still {
        let count = |figure: Option<f64>| figure.map_or(String::new(), short);
        lines.push(vec![
            one.name.clone(),
            one.idle_kib.map_or(String::new(), |kib| kib.to_string()),
            one.binary_bytes.map_or(String::new(), |bytes| bytes.to_string()),
            count(one.instructions),
            count(one.instructions_stdio),
            count(one.system_calls),
            count(one.system_calls_crowd),
        ]);
    }
    format!("\n## Counts\n\n{}", aligned(&lines))
}

fn with_spread(figure: Option<Middle>) -> String {
    figure.map_or(String::new(), |middle| {
        format!("{} ±{:.0} %", short(middle.median), middle.spread_percent())
    })
}

/// A figure with as many digits as mean something.
pub fn short(figure: f64) -> String {
    if figure >= 100.0 {
        format!("{figure:.0}")
    } else if figure >= 10.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.2}")
    }
}

/// A table whose columns are as wide as their widest field.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
    let row = |line: &[String]| {
        let fields: Vec<String> = (0..columns)
            .map(|column| match column {
                0 => format!("{:<width$}", line[column], width = widths[column]),
                _ => format!("{:>width$}", line[column], width = widths[column]),
            })
            .collect();
        format!("| {} |\n", fields.join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| match column {
            0 => "-".repeat(*width),
            _ => format!("{}:", "-".repeat(width - 1)),
        })
        .collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text += &row(line);
        if number == 0 {
            text += &format!("| {} |\n", rule.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{short, work};
    use crate::figures::Middle;
    use crate::run::results::{Row, Work};

    #[test]
    fn work_is_a_table_with_its_failures_below() {
        let per_second = Middle::of([900.0, 1_000.0, 1_100.0]);
        let rows = vec![
            Row { name: "direct".to_owned(), per_second, ..Row::default() },
            Row { name: "peer".to_owned(), swapped: 2, children: Some(1.0), ..Row::default() },
        ];
        let text = work(&Work { letter: 'a', title: "calls".to_owned(), rows });
        let expected = "\n## a: calls\n\n\
            |        | per second | p50 µs | p99 µs | own CPU µs | upstream requests | children | failures |\n\
            | ------ | ---------: | -----: | -----: | ---------: | ----------------: | -------: | -------: |\n\
            | direct | 1000 ±10 % |        |        |            |                   |          |        0 |\n\
            | peer   |            |        |        |            |                   |        1 |        2 |\n\
            \n- peer: 0 wrong, 2 swapped, 0 lost\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        assert_eq!([short(12_345.6), short(12.34), short(1.234)], ["12346", "12.3", "1.23"]);
    }
}
