//! Files of toolsets: what is read, what is kept, what is refused.

use std::io::Write as _;
use std::path::Path;

use catalog::toolset::Toolset;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{archive, bundle, saved};

const FILE: &str = r#"{
  "$schema": "kept",
  "dev": {
    "name": "dev", "x-colour": {"deep": 1e400},
    "version": "1.0.0", "createdAt": "2025-01-01T00:00:00Z",
    "tools": [{"namespacedName": "git.log", "x": [1]}, {"refId": "sha256:ab"}],
    "toolNotes": [{"toolRef": {"namespacedName": "git.log"}, "notes": [{"name": "n", "note": "t"}]}]
  }
}"#;

fn read(text: &str) -> Result<Vec<Toolset>, String> {
    let saved = saved::read(Path::new("f.json"), text).map_err(|fault| fault.to_string())?;
    Ok(saved.into_iter().filter_map(|saved| saved.toolset).collect())
}

#[test]
fn what_is_written_is_read_again_with_what_is_not_known() {
    // HT-35, HT-36, HT-38
    let toolsets = read(FILE).unwrap();
    let [dev] = toolsets.as_slice() else { panic!("{toolsets:?}") };
    assert_eq!((&*dev.name, dev.version.as_deref()), ("dev", Some("1.0.0")));
    assert_eq!(dev.references[0].name.as_deref(), Some("git.log"));
    assert_eq!(dev.references[1].ref_id.as_deref(), Some("sha256:ab"));
    assert_eq!(dev.notes[0].notes[0].text, "t");
    let parts = saved::read(Path::new("f.json"), FILE).unwrap();
    let changed = Toolset { description: Some("new".into()), ..dev.clone() };
    let member = saved::member(&changed, Some(parts[1].text));
    let text = saved::file([("$schema", "\"kept\"".to_owned()), ("dev", member)].into_iter());
    assert_eq!(
        text,
        r#"{
  "$schema": "kept",
  "dev": {
    "name": "dev",
    "description": "new",
    "version": "1.0.0",
    "createdAt": "2025-01-01T00:00:00Z",
    "tools": [
      {"namespacedName": "git.log", "x": [1]},
      {"refId": "sha256:ab"}
    ],
    "toolNotes": [
      {"toolRef": {"namespacedName": "git.log"}, "notes": [{"name": "n", "note": "t"}]}
    ],
    "x-colour": {"deep": 1e400}
  }
}
"#
    );
    assert_eq!(read(&text).unwrap()[0].description.as_deref(), Some("new"));
    assert_eq!(saved::file(std::iter::empty()), "{}\n");
}

#[test]
fn fault_has_its_place() {
    for (text, fault) in [
        ("{\n  \"a\": {,", "f.json:2:9: not valid JSON: key must be a string"),
        ("", "f.json:1:0: not valid JSON: EOF while parsing a value"),
        ("[]", "f.json: not a JSON object"),
        ("{\"a\":\n{\"tools\": 1}}", "f.json:2:11: not a JSON array"),
        ("{\"a\":{}}", "f.json:1:6: `a` has no `tools`; list them"),
        (
            "{\"a\":{\"tools\":[{}]}}",
            "f.json:1:16: a tool has neither `namespacedName` nor `refId`; give at least one",
        ),
        ("{\"a\":{\"tools\":[{\"refId\":1}]}}", "f.json:1:25: `1` is no string"),
        ("{\"a\":{\"tools\":[]},\"a\":{\"tools\":[]}}", "f.json:1:23: `a` is there twice"),
    ] {
        assert_eq!(read(text).unwrap_err(), fault);
    }
}

/// An archive of entries: a path, and a text or where a link leads.
fn packed(entries: &[(&str, Result<&str, &str>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        // As a stranger would write it: the library refuses such paths itself.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_mode(0o644);
        let text = content.unwrap_or_default();
        if let Err(link) = content {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_link_name(link).unwrap();
        }
        header.set_size(text.len() as u64);
        header.set_cksum();
        archive.append(&header, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

const PERSONA: &str = "name: dev-kit\ndescription: everything to work with\ntoolsets:\n  - name: git-only\n    \
    toolIds: [git.log, git.diff]\ndefaultToolset: git-only\nmetadata:\n  author: me\n";

#[test]
fn archive_is_read_in_memory_and_traps_are_refused() {
    let fine =
        packed(&[("./persona.yaml", Ok(PERSONA)), ("./mcp.json", Ok("{}")), ("a/b/c", Ok(""))]);
    let unpacked = archive::unpack(&fine).unwrap();
    assert_eq!((unpacked.persona.as_str(), unpacked.servers.as_deref()), (PERSONA, Some("{}")));
    let in_folder = packed(&[("kit/persona.yml", Ok(PERSONA))]);
    assert_eq!(archive::unpack(&in_folder).unwrap().persona, PERSONA);
    let check = |entries: &[(&str, Result<&str, &str>)], problem: &str| {
        assert_eq!(archive::unpack(&packed(entries)).unwrap_err(), problem);
    };
    check(
        &[("../persona.yaml", Ok(PERSONA))],
        "`../persona.yaml` leads out of the archive; it is not unpacked",
    );
    check(&[("/etc/x", Ok(""))], "`/etc/x` leads out of the archive; it is not unpacked");
    check(
        &[("persona.yaml", Err("/etc/passwd"))],
        "`persona.yaml` is neither a file nor a folder; it is not unpacked",
    );
    check(&[("a", Ok(""))], "has no `persona.yaml`");
    let twice = [("persona.yaml", Ok(PERSONA)), ("x/persona.yaml", Ok(PERSONA))];
    check(&twice, "`x/persona.yaml` is there twice");
    let many: Vec<_> = std::iter::repeat_n(("a", Ok("")), 1_001).collect();
    check(&many, "has more than 1000 entries");
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..17 {
        bomb.write_all(&vec![0; 1024 * 1024]).unwrap();
    }
    let problem = archive::unpack(&bomb.finish().unwrap()).unwrap_err();
    assert_eq!(problem, "unpacks to more than 16 MiB; that is too large for a persona");
    assert!(archive::unpack(b"\x1f\x8bnothing").is_err());
}

#[test]
fn every_kind_of_file_is_recognised_by_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let names = |path: &Path| {
        let bundle = bundle(path).map_err(|fault| fault.problem)?;
        let names: Vec<_> = bundle.toolsets.iter().map(|toolset| &*toolset.name).collect();
        let groups: Vec<_> = bundle.groups.iter().map(|group| group.servers.join("+")).collect();
        Ok::<_, String>(format!("{names:?} {groups:?} {:?}", bundle.last_equipped))
    };
    let settings = br#"{"mcpConfigPath":"x","toolsets":{"old":{"tools":[{"refId":"ab"}]}},"lastEquippedToolset":"old"}"#;
    let settings = write("ht/config.json", settings);
    assert_eq!(names(&settings).unwrap(), r#"["old"] [] Some("old")"#);
    let groups = br#"{"version":"1","groups":[{"id":"1","name":"web","serverIds":["a","b"]}]}"#;
    assert_eq!(names(&write("ht/groups.json", groups)).unwrap(), r#"[] ["a+b"] None"#);
    assert_eq!(names(&write("ht/toolsets.json", FILE.as_bytes())).unwrap(), r#"["dev"] [] None"#);
    assert_eq!(names(&folder.path().join("ht")).unwrap(), r#"["dev", "old"] ["a+b"] Some("old")"#);
    // A toolset may be called so.
    let odd = write("odd.json", br#"{"toolsets":{"tools":[{"refId":"ab"}]}}"#);
    assert_eq!(names(&odd).unwrap(), r#"["toolsets"] [] None"#);
    let persona = r#"["git-only"] [] Some("git-only")"#;
    let packed = packed(&[("persona.yaml", Ok(PERSONA))]);
    assert_eq!(names(&write("kit.htp", &packed)).unwrap(), persona);
    write("kit/persona.yaml", PERSONA.as_bytes());
    write("kit/mcp.json", br#"{"mcpServers":{"git":{}}}"#);
    assert_eq!(names(&folder.path().join("kit")).unwrap(), persona);
    assert_eq!(
        bundle(&folder.path().join("kit")).unwrap().notes,
        [
            "persona `dev-kit` is made for the servers `git` of its `mcp.json`; see that the configuration has them"
        ]
    );
    let strict = write("bad/persona.yaml", format!("{PERSONA}extra: 1\n").as_bytes());
    assert!(names(&strict).unwrap_err().contains("extra"));
    let missing = PERSONA.replace("defaultToolset: git-only", "defaultToolset: other");
    let missing = write("bad/persona.yml", missing.as_bytes());
    assert_eq!(
        names(&missing).unwrap_err(),
        "`defaultToolset` is `other`, which is none of `toolsets`"
    );
}
