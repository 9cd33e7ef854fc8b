//! What a tool of Python wants: by the hints of its function, by a model, or by a literal JSON Schema.

use tree_sitter::Node;

use super::names::{Place, Project, keyword};
use crate::source::{children, field};
use crate::tools::{Parameter, tidy};

/// The first text of a function's body.
pub fn docstring<'t>(project: &Project<'t>, file: usize, definition: Node<'t>) -> Option<String> {
    let body = field(definition, "body")?;
    let statement = children(body).into_iter().next()?;
    let first = children(statement).into_iter().next()?;
    let is_text = statement.kind() == "expression_statement"
        && matches!(first.kind(), "string" | "concatenated_string");
    if is_text { project.text(&Place::new(file, first)) } else { None }
}

/// The parameters of a function that its caller gives.
pub fn parameters<'t>(project: &Project<'t>, file: usize, definition: Node<'t>) -> Vec<Parameter> {
    let given = field(definition, "parameters").map(children).unwrap_or_default();
    let word = |node| project.word(file, node);
    let mut found = Vec::new();
    for one in given {
        let name = match one.kind() {
            "identifier" => Some(one),
            "typed_parameter" => {
                children(one).into_iter().next().filter(|name| name.kind() == "identifier")
            }
            "default_parameter" | "typed_default_parameter" => field(one, "name"),
            _ => None,
        };
        let Some(name) = name.map(word).filter(|name| !matches!(*name, "self" | "cls")) else {
            continue;
        };
        let hint = field(one, "type");
        let kind = hint.map(word).unwrap_or_default();
        // What the SDK puts in itself.
        if kind.split(['[', '|', ' ', '.']).any(|part| part == "Context") {
            continue;
        }
        let value = field(one, "value");
        let (kind, about) =
            hint.map_or((String::new(), None), |hint| annotated(project, file, hint));
        let by_default = value.and_then(|value| described(project, file, value));
        let is_required = value.is_none_or(|value| is_field_without_default(project, file, value));
        found.push(Parameter {
            name: name.to_owned(),
            kind,
            description: about.or(by_default).map(|text| tidy(&text)).unwrap_or_default(),
            required: is_required,
        });
    }
    found
}

/// The type within `Annotated[type, "…"]` or `Annotated[type, Field(description="…")]`, and the description.
fn annotated<'t>(project: &Project<'t>, file: usize, hint: Node<'t>) -> (String, Option<String>) {
    let inner = children(hint).into_iter().next().unwrap_or(hint);
    let parts: Vec<Node<'t>> = match inner.kind() {
        "generic_type" => {
            let name = children(inner).into_iter().next();
            let arguments = children(inner).into_iter().nth(1).map(children).unwrap_or_default();
            if name.is_some_and(|name| project.word(file, name) == "Annotated") {
                arguments
            } else {
                Vec::new()
            }
        }
        "subscript" => {
            let value = field(inner, "value").map(|value| project.word(file, value));
            if value.is_some_and(|value| value.ends_with("Annotated")) {
                children(inner).into_iter().skip(1).collect()
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    };
    let Some((first, rest)) = parts.split_first() else {
        return (project.word(file, hint).to_owned(), None);
    };
    let about = rest.iter().find_map(|part| {
        let part = if part.kind() == "type" { children(*part).into_iter().next()? } else { *part };
        described(project, file, part).or_else(|| project.text(&Place::new(file, part)))
    });
    (project.word(file, *first).to_owned(), about)
}

/// What `Field(description="…")` says.
fn described<'t>(project: &Project<'t>, file: usize, value: Node<'t>) -> Option<String> {
    let arguments = field(value, "arguments").filter(|_| value.kind() == "call")?;
    project.text(&Place::new(file, keyword(project, file, arguments, "description")?))
}

/// Whether a value is `Field(…)` or `Field(...)`, which sets nothing.
fn is_field_without_default<'t>(project: &Project<'t>, file: usize, value: Node<'t>) -> bool {
    let Some(arguments) = field(value, "arguments").filter(|_| value.kind() == "call") else {
        return false;
    };
    let sets = ["default", "default_factory"];
    let first = children(arguments).into_iter().find(|node| node.kind() != "keyword_argument");
    first.is_none_or(|first| first.kind() == "ellipsis")
        && !sets.iter().any(|key| keyword(project, file, arguments, key).is_some())
}

/// The parameters of a schema: a dictionary, or `Model.model_json_schema()`.
pub fn of_schema<'t>(project: &Project<'t>, place: &Place<'t>) -> Vec<Parameter> {
    if !project.may_go_on(place) {
        return Vec::new();
    }
    let place = project.resolve(place);
    match place.node.kind() {
        "dictionary" => of_dictionary(project, &place),
        "call" => {
            let model =
                field(place.node, "function").and_then(|function| field(function, "object"));
            model
                .map(|model| of_model(project, &project.resolve(&place.with(model))))
                .unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn of_dictionary<'t>(project: &Project<'t>, place: &Place<'t>) -> Vec<Parameter> {
    let Some(properties) = entry(project, place, "properties") else { return Vec::new() };
    let required = entry(project, place, "required").map(|list| project.resolve(&list));
    let required: Vec<String> = required
        .map(|list| {
            children(list.node)
                .into_iter()
                .filter_map(|name| project.text(&list.with(name)))
                .collect()
        })
        .unwrap_or_default();
    let properties = project.resolve(&properties);
    let pairs = children(properties.node).into_iter().filter(|pair| pair.kind() == "pair");
    let mut found = Vec::new();
    for pair in pairs {
        let (Some(key), Some(value)) = (field(pair, "key"), field(pair, "value")) else { continue };
        let Some(name) = project.text(&properties.with(key)) else { continue };
        let value = properties.with(value);
        let said = |key| {
            entry(project, &value, key).and_then(|text| project.text(&text)).unwrap_or_default()
        };
        found.push(Parameter {
            required: required.contains(&name),
            kind: said("type"),
            description: tidy(&said("description")),
            name,
        });
    }
    found
}

fn entry<'t>(project: &Project<'t>, place: &Place<'t>, key: &str) -> Option<Place<'t>> {
    let place = project.resolve(place);
    children(place.node).into_iter().find_map(|pair| {
        let found = project.text(&place.with(field(pair, "key")?))?;
        if found == key { field(pair, "value").map(|value| place.with(value)) } else { None }
    })
}

/// The fields of a class: `name: type = default`.
fn of_model<'t>(project: &Project<'t>, class: &Place<'t>) -> Vec<Parameter> {
    let Some(body) = field(class.node, "body").filter(|_| class.node.kind() == "class_definition")
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for statement in children(body) {
        let Some(set) = children(statement).into_iter().find(|inner| inner.kind() == "assignment")
        else {
            continue;
        };
        let (Some(name), Some(hint)) = (field(set, "left"), field(set, "type")) else { continue };
        let value = field(set, "right");
        let (kind, about) = annotated(project, class.file, hint);
        let by_default = value.and_then(|value| described(project, class.file, value));
        found.push(Parameter {
            name: project.word(class.file, name).to_owned(),
            kind,
            description: about.or(by_default).map(|text| tidy(&text)).unwrap_or_default(),
            required: value
                .is_none_or(|value| is_field_without_default(project, class.file, value)),
        });
    }
    found
}
