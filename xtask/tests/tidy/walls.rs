//! The walls of the house: which crate may use which.

use crate::{Source, check, hold_all_to, numbered};

/// The rooms, and which other rooms each may use outside its tests. STYLE.md gives the reasons.
const WALLS: [(&str, &[&str]); 15] = [
    ("mcp", &[]),
    ("catalog", &["mcp"]),
    ("secrets", &[]),
    ("survey", &[]),
    ("upstream", &["mcp", "secrets"]),
    ("gateway", &["mcp", "catalog", "upstream"]),
    ("manager", &["mcp", "catalog", "secrets", "survey", "upstream", "gateway", "config"]),
    ("server", &["mcp", "gateway"]),
    ("config", &["mcp", "catalog", "upstream"]),
    ("audit", &["mcp"]),
    (
        "toolman",
        &[
            "mcp", "catalog", "secrets", "upstream", "gateway", "manager", "server", "config",
            "audit",
        ],
    ),
    (
        "testkit",
        &[
            "mcp", "catalog", "secrets", "upstream", "gateway", "manager", "server", "config",
            "audit", "toolman",
        ],
    ),
    ("fixture", &[]),
    ("bench", &[]),
    ("xtask", &[]),
];

fn stays_within_its_walls(source: &Source) -> Vec<String> {
    let Some(folder) = source.path.strip_suffix("/Cargo.toml") else {
        return Vec::new();
    };
    let room = folder.strip_prefix("crates/").unwrap_or(folder);
    let Some((_, allowed)) = WALLS.iter().find(|(name, _)| *name == room) else {
        return vec![source.offence(1, "say in xtask/tests/tidy/walls.rs what this crate may use")];
    };
    let mut offences = Vec::new();
    for (line, used) in dependencies(&source.text) {
        let is_room = WALLS.iter().any(|(name, _)| *name == used);
        if is_room && !allowed.contains(&used) {
            let what = format!("`{room}` must not use `{used}` outside its tests");
            offences.push(source.offence(line, &what));
        }
    }
    offences
}

/// What a manifest depends on outside tests, with the line of each.
///
/// It reads as much TOML as manifests here are written in, and takes a renamed package by its name.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    const TABLES: [&str; 2] = ["dependencies", "build-dependencies"];
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in numbered(manifest) {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let (parent, last) = header.rsplit_once('.').unwrap_or(("", header));
            is_inside = TABLES.contains(&last);
            if TABLES.iter().any(|table| parent == *table || parent.ends_with(&format!(".{table}")))
            {
                found.push((number, last.trim_matches(['"', '\''])));
            }
            continue;
        }
        let package = line.split("package = \"").nth(1).and_then(|rest| rest.split('"').next());
        let key = line.split(['.', '=', ' ']).next().map(|key| key.trim_matches(['"', '\'']));
        if is_inside && !line.starts_with('#') {
            found.extend(package.or(key).map(|name| (number, name)));
        }
    }
    found
}

#[test]
fn every_crate_stays_within_its_walls() {
    hold_all_to(stays_within_its_walls);
}

#[test]
fn crate_that_uses_a_forbidden_room_is_found() {
    let path = "crates/catalog/Cargo.toml";
    let found = ["crates/catalog/Cargo.toml:3: `catalog` must not use `gateway` outside its tests"];
    for text in [
        "[dependencies]\nmcp.workspace = true\ngateway.workspace = true\n",
        "[dependencies]\nmcp = { workspace = true }\ngateway = { path = \"../gateway\" }\n",
        "[dependencies]\n# The door.\ndoor = { package = \"gateway\", workspace = true }\n",
        "[build-dependencies]\n\n\"gateway\" = \"1\"\n",
        "[target.'cfg(unix)'.dependencies]\n\ngateway.workspace = true\n",
        "[package]\n\n[dependencies.gateway]\nworkspace = true\n",
    ] {
        check(stays_within_its_walls, path, text, &found);
    }
    check(stays_within_its_walls, path, "[dev-dependencies]\ngateway.workspace = true\n", &[]);
    check(stays_within_its_walls, path, "[dependencies]\nserde.workspace = true\n", &[]);
}

#[test]
fn testkit_outside_tests_and_a_crate_without_walls_are_found() {
    let text = "[dependencies]\ntestkit.workspace = true\n";
    check(
        stays_within_its_walls,
        "crates/toolman/Cargo.toml",
        text,
        &["crates/toolman/Cargo.toml:2: `toolman` must not use `testkit` outside its tests"],
    );
    check(
        stays_within_its_walls,
        "crates/annex/Cargo.toml",
        "",
        &["crates/annex/Cargo.toml:1: say in xtask/tests/tidy/walls.rs what this crate may use"],
    );
}
