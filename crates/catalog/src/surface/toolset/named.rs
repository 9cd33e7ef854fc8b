//! How a model may name a tool: as the schema has it, or by its plain name.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Named;

/// The form that the schema asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Form {
    namespaced_name: Option<String>,
    ref_id: Option<String>,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        deserializer.deserialize_any(AnyForm)
    }
}

struct AnyForm;

impl<'de> Visitor<'de> for AnyForm {
    type Value = Named;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            r#"a tool as `{"namespacedName": "git.log"}`, `{"refId": "…"}` or `"git.log"`"#,
        )
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Named, E> {
        Ok(Named { namespaced_name: Some(name.to_owned()), ref_id: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Named, A::Error> {
        let Form { namespaced_name, ref_id } = Form::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Named { namespaced_name, ref_id })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wish;

    fn parse(tools: &str) -> Result<Wish, String> {
        Wish::parse("build-toolset", Some(&format!(r#"{{"name":"a","tools":{tools}}}"#)))
    }

    #[test]
    fn plain_name_is_a_tool_too() {
        let Ok(Wish::Build { tools, .. }) = parse(r#"["git.log",{"refId":"x"}]"#) else {
            panic!("it is read");
        };
        assert_eq!(tools[0].namespaced_name.as_deref(), Some("git.log"));
        assert_eq!(tools[1].ref_id.as_deref(), Some("x"));
    }

    #[test]
    fn faults_show_the_form_and_name_no_type() {
        let form = r#"expected a tool as `{"namespacedName": "git.log"}`, `{"refId": "…"}` or `"git.log"`"#;
        assert_eq!(
            parse("[7]").unwrap_err(),
            format!("the arguments can't be used: invalid type: integer `7`, {form}")
        );
        let unknown = parse(r#"[{"name":"git.log"}]"#).unwrap_err();
        assert!(
            unknown.ends_with("unknown field `name`, expected `namespacedName` or `refId`"),
            "{unknown}"
        );
        for (tool, arguments) in [
            ("build-toolset", "[]"),
            ("equip-toolset", "7"),
            ("delete-toolset", "null"),
            ("add-tool-annotation", r#"{"toolRef":"a","notes":["x"]}"#),
        ] {
            let fault = Wish::parse(tool, Some(arguments)).unwrap_err();
            assert!(!fault.contains("struct"), "{fault}");
        }
    }
}
