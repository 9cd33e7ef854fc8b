//! `deploy/compose.yaml`: core and manager as two services.

use serde_json::{Value, json};

fn compose() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/compose.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn compose_file_has_two_services_over_one_volume() {
    // TD-156
    let file = compose();
    let services = file["services"].as_object().unwrap();
    let names: Vec<_> = services.keys().map(String::as_str).collect();
    assert_eq!(names, ["toolman-core", "toolman-manager"]);
    for (name, service) in services {
        let user = service["user"].as_str().unwrap();
        assert_eq!(user, "${TOOLDOCK_UID:-1000}:${TOOLDOCK_GID:-1000}", "{name}");
        let mounts: Vec<_> = service["volumes"].as_array().unwrap().iter().collect();
        assert!(mounts.contains(&&json!("data:/data")), "{name}");
        let environment = &service["environment"];
        for key in ["BEARER_TOKEN", "MANAGER_INTERNAL_TOKEN"] {
            let value = environment[key].as_str().unwrap();
            assert!(value.starts_with(&format!("${{{key}:?")), "{name}: {value}");
        }
        assert!(service["healthcheck"]["test"].to_string().contains("/health"), "{name}");
        assert!(service["networks"]["internal"]["ipv4_address"].is_string(), "{name}");
    }
    let manager = &services["toolman-manager"];
    assert_eq!(manager["depends_on"]["toolman-core"]["condition"], "service_healthy");
    assert!(manager["tmpfs"].to_string().contains("/tmp"), "secrets are edited in memory");
    let address = manager["networks"]["internal"]["ipv4_address"].as_str().unwrap();
    let allowed = &services["toolman-core"]["environment"]["INTERNAL_ALLOWED_CIDRS"];
    assert_eq!(allowed, &json!(format!("{address}/32")));
    assert!(file["networks"]["internal"]["ipam"]["config"][0]["subnet"].is_string());
    assert!(file["volumes"]["data"].is_null() || file["volumes"]["data"].is_object());
    let is_targeted = |service: &str, stage: &str| services[service]["build"]["target"] == stage;
    assert!(is_targeted("toolman-core", "core") && is_targeted("toolman-manager", "manager"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/Dockerfile");
    let stages = std::fs::read_to_string(path).unwrap();
    let (core, manager) = stages.split_once("AS manager").unwrap();
    let installs_git = |stage: &str| {
        stage.lines().any(|line| line.contains("apt-get install") && line.contains(" git"))
    };
    assert!(!installs_git(core) && installs_git(manager), "only the manager needs git");
}
