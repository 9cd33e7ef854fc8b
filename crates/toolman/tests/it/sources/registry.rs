//! A registry on loopback: searched, and its packages taken apart. TD-140, TD-141; HARDENING A02

use std::fs;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use mcp::text::hexadecimal;
use serde_json::{Value, json};

use super::Manager;
use super::site::{Site, archive, base64};

const INDEX: &str = "server.tool('greet', 'Says hello', { name: z.string() }, run);\n";

#[tokio::test]
async fn registry_is_searched_over_its_pages() {
    let site = Site::start().await;
    let server = |name: &str, package: Value| {
        json!({"server": {"name": name, "description": "D\u{1b}[8m", "version": "1.0.0",
        "repository": {"url": "https://github.com/a/b"}, "packages": [package]}})
    };
    let first = json!({"servers": [server("io.github.a/one", json!({"registryType": "npm", "identifier": "@a/one", "version": "1.0.0"}))],
        "metadata": {"nextCursor": "a b", "count": 1}});
    // As the registry answered at first: entries as they are, and other spellings.
    let second = json!({"servers": [{"name": "io.github.b/two", "description": "Second",
        "packages": [{"registry_type": "pypi", "identifier": "two", "version": "2"}]},
        {"name": "io.github.c/three", "remotes": [{"type": "streamable-http", "url": "https://three.test/mcp"}]}],
        "metadata": {"count": 2}});
    site.page("/v0/servers?search=git%20hub&version=latest&limit=50", first.to_string());
    site.page(
        "/v0/servers?search=git%20hub&version=latest&limit=50&cursor=a%20b",
        second.to_string(),
    );
    let manager = Manager::of_site(&site).await;
    assert!(site.asked.lock().unwrap().is_empty(), "nobody asked for anything");
    let found = manager.call("search_registry", json!({"query": "git hub"})).await.unwrap();
    assert_eq!(
        found,
        json!({"result": [
            {"name": "io.github.a/one", "description": "D [8m", "package": "@a/one", "package_type": "npm",
             "version": "1.0.0", "remote_url": "", "source_url": "https://github.com/a/b"},
            {"name": "io.github.b/two", "description": "Second", "package": "two", "package_type": "pypi",
             "version": "", "remote_url": "", "source_url": ""},
            {"name": "io.github.c/three", "description": "", "package": "", "package_type": "remote",
             "version": "", "remote_url": "https://three.test/mcp", "source_url": ""},
        ]})
    );
    let error = manager.call("search_registry", json!({"query": "nothing"})).await.unwrap_err();
    assert!(error.contains("answered with status 404: nothing here"), "{error}");
    site.page("/v0/servers?search=bad&version=latest&limit=50", "<html>");
    let error = manager.call("search_registry", json!({"query": "bad"})).await.unwrap_err();
    assert!(error.contains("answered no JSON"), "{error}");
}

#[tokio::test]
async fn packages_of_npm_and_pypi_are_unpacked_and_analysed() {
    let site = Site::start().await;
    let sources = archive(&[
        ("package/package.json", r#"{"dependencies": {"@modelcontextprotocol/sdk": "1"}}"#),
        ("package/dist/index.js", INDEX),
    ]);
    site.offer_npm("@a/one", &sources);
    let manager = Manager::of_site(&site).await;
    let arguments = json!({"package": "@a/one", "namespace": "one"});
    let analysis = manager.call("install_from_registry", arguments).await.unwrap();
    assert_eq!(analysis["repo_url"], "npm:@a/one");
    assert_eq!(analysis["version"], "1.2.3");
    assert_eq!(analysis["framework"], "mcp-sdk");
    assert_eq!(analysis["tools_found"][0]["name"], "greet");
    assert!(analysis["next_steps"].as_str().unwrap().contains("create_namespace(\"one\")"));
    let path = analysis["tools_found"][0]["file"].as_str().unwrap();
    let file = manager
        .call("read_repo_file", json!({"repo_url": "npm:@a/one", "path": path}))
        .await
        .unwrap();
    assert_eq!(file["content"], INDEX);

    let python = archive(&[(
        "two-2.0/two/server.py",
        "from mcp.server.fastmcp import FastMCP\n@mcp.tool()\ndef add(a: int) -> int:\n    'Adds.'\n",
    )]);
    let hash = hexadecimal(digest(&SHA256, &python).as_ref());
    let about = json!({"info": {"version": "2.0"}, "urls": [
        {"packagetype": "bdist_wheel", "filename": "two-2.0-py3-none-any.whl", "url": "https://elsewhere.test/x", "digests": {}},
        {"packagetype": "sdist", "filename": "two-2.0.tar.gz", "url": format!("{}/files/two.tgz", site.address), "digests": {"sha256": hash}},
    ]});
    site.page("/pypi/two/2.0/json", about.to_string());
    site.page("/files/two.tgz", python);
    let packages = json!([{"registryType": "oci", "identifier": "docker.io/a/two"}, {"registryType": "pypi", "identifier": "two", "version": "2.0"}]);
    site.offer_servers("two", &[json!({"name": "io.github.b/two", "packages": packages})]);
    let analysis = manager
        .call("install_from_registry", json!({"package": "two", "namespace": "two"}))
        .await
        .unwrap();
    assert_eq!(analysis["repo_url"], "pypi:two@2.0");
    assert_eq!(analysis["tools_found"][0]["parameters"][0]["type"], "int");
}

#[tokio::test]
async fn packages_that_are_not_what_they_say_are_refused() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let good = archive(&[("package/index.js", INDEX)]);
    let wrong = async |site: &Site, expected: &str| {
        let error = manager
            .call("install_from_registry", json!({"package": "@a/b", "namespace": "b"}))
            .await
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
        let repos = fs::read_dir(manager.path().join("repos"));
        assert_eq!(repos.map_or(0, Iterator::count), 0, "something is left");
        drop(site.asked.lock().unwrap().drain(..));
    };
    site.offer_npm("@a/b", &good);
    site.page("/files/package.tgz", archive(&[("package/index.js", "evil()")]));
    wrong(&site, "the hash of its bytes differs; nothing was unpacked").await;
    let about = |tarball: &str, integrity: &str| {
        json!({"version": "1", "dist": {"tarball": tarball, "integrity": integrity}}).to_string()
    };
    let hash = format!("sha512-{}", base64(digest(&SHA512, &good).as_ref()));
    for elsewhere in
        ["http://169.254.169.254/latest", "https://evil.test/x.tgz", "http://127.0.0.1:1/x.tgz"]
    {
        site.page("/@a%2Fb/latest", about(elsewhere, &hash));
        wrong(&site, "is not on 127.0.0.1, which was asked").await;
    }
    let file = format!("{}/files/package.tgz", site.address);
    site.page("/@a%2Fb/latest", about(&file, "sha1-abc"));
    wrong(&site, "with a sha512 of its archive").await;
    site.page("/@a%2Fb/latest", about("file:///etc/passwd", &hash));
    wrong(&site, "with an address of its archive").await;
    site.page("/@a%2Fb/latest", about(&file, &hash));
    site.pages.lock().unwrap().insert("/files/package.tgz".to_owned(), (302, Vec::new()));
    wrong(&site, "redirects to").await;
    let bomb = archive(&[("package/zeros", &"0".repeat(30 << 20))]);
    site.offer_npm("@a/b", &bomb);
    wrong(&site, "grows more than 100 times").await;
    site.offer_npm("@a/b", b"no archive");
    wrong(&site, "can't be read").await;
    let names = ["../x", "a/b/c", "@a", "@a/../b", "-x", "a b", "a?b", "", "@a/b#c"];
    for name in names {
        let arguments = json!({"package": name, "namespace": "b", "package_type": "npm"});
        let error = manager.call("install_from_registry", arguments).await.unwrap_err();
        assert!(error.contains("is no name of a package"), "{name}: {error}");
    }
    assert!(site.asked.lock().unwrap().is_empty(), "a wrong name was asked for");
}

#[tokio::test]
async fn server_of_the_registry_is_proposed_and_not_started() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let package = json!({"registryType": "npm", "identifier": "@a/one", "version": "1.0.0",
        "environmentVariables": [{"name": "API_KEY", "isSecret": true}, {"name": "REGION", "default": "eu"}, {"name": "TEAM"}],
        "packageArguments": [{"type": "named", "name": "--mode", "value": "fast"}, {"type": "positional", "valueHint": "data_dir", "isRequired": true}]});
    site.offer_servers("one", &[json!({"name": "io.github.a/one", "packages": [package]})]);
    site.offer_servers("io.github.a%2Fone", &[]);
    let arguments = json!({"package": "io.github.a/one", "namespace": "one"});
    let proposed = manager.call("install_server", arguments).await.unwrap();
    assert_eq!(
        proposed["entry"],
        "[[servers]]\nnamespace = \"one\"\ncommand = \"npx\"\n\
         args = [\"-y\", \"@a/one@1.0.0\", \"--mode\", \"fast\", \"${DATA_DIR}\"]\n\
         env = { API_KEY = \"${secret:API_KEY}\", REGION = \"eu\", TEAM = \"${TEAM}\" }\n"
    );
    assert_eq!(proposed["secrets"], json!(["API_KEY"]));
    assert_eq!(proposed["to_fill"], json!(["TEAM", "DATA_DIR"]));
    let kept = fs::read_to_string(manager.path().join("proposals/one.json")).unwrap();
    assert!(kept.contains("io.github.a/one"));
}

#[tokio::test]
async fn what_the_registry_says_can_reach_nothing_else() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let hostile = [
        (json!({"registryType": "npm", "identifier": "--evil"}), "is no name of a package"),
        (
            json!({"registryType": "npm", "identifier": "a", "version": "${secret:OTHER}"}),
            "can't stand in a configuration",
        ),
        (
            json!({"registryType": "npm", "identifier": "a", "packageArguments": [{"value": "${secret:OTHER}"}]}),
            "can't stand in a configuration",
        ),
        (
            json!({"registryType": "npm", "identifier": "a", "environmentVariables": [{"name": "LD_PRELOAD", "value": "x"}]}),
            "which is refused",
        ),
        (
            json!({"registryType": "npm", "identifier": "a", "environmentVariables": [{"name": "A = 1 }\ncommand", "value": "x"}]}),
            "which is refused",
        ),
        (
            json!({"registryType": "npm", "identifier": "a", "version": "1\"\ncommand = \"sh"}),
            "can't stand in a configuration",
        ),
        (
            json!({"registryType": "nuget", "identifier": "a"}),
            "offers nothing that can be started here (nuget)",
        ),
        (
            json!({"registryType": "sh", "identifier": "a", "command": "touch mark", "runtimeArguments": ["x"]}),
            "offers nothing that can be started here",
        ),
    ];
    for (package, expected) in hostile {
        site.offer_servers("evil", &[json!({"name": "evil", "packages": [package]})]);
        let error = manager
            .call("install_server", json!({"package": "evil", "namespace": "evil"}))
            .await
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let remote = json!({"type": "streamable-http", "url": "https://three.test/mcp", "headers": [{"name": "X-Api-Key", "isSecret": true}]});
    site.offer_servers("three", &[json!({"name": "three", "remotes": [remote]})]);
    let proposed = manager
        .call("install_server", json!({"package": "three", "namespace": "three"}))
        .await
        .unwrap();
    assert_eq!(
        proposed["entry"],
        "[[servers]]\nnamespace = \"three\"\nurl = \"https://three.test/mcp\"\nheaders = { \"X-Api-Key\" = \"${secret:X_API_KEY}\" }\n"
    );
    for url in ["http://three.test/mcp", "https://{host}/mcp", "https://u:p@three.test/"] {
        site.offer_servers("evil", &[json!({"name": "evil", "remotes": [{"url": url}]})]);
        let error = manager
            .call("install_server", json!({"package": "evil", "namespace": "evil"}))
            .await
            .unwrap_err();
        assert!(error.contains("is no plain `https` one"), "{error}");
    }
    assert!(!manager.path().join("proposals/evil.json").exists());
}

#[tokio::test]
async fn image_is_described_and_not_pulled() {
    // TD-141
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let image = json!({"registryType": "oci", "identifier": "docker.io/a/four", "version": "4.0",
        "environmentVariables": [{"name": "FOUR_TOKEN", "isSecret": true}, {"name": "REGION"}]});
    let entry = json!({"name": "io.github.d/four", "packages": [image],
        "repository": {"url": "https://127.0.0.1/d/four"}});
    site.offer_servers("io.github.d%2Ffour", &[entry]);
    let arguments = json!({"package": "io.github.d/four", "namespace": "four"});
    let told = manager.call("install_from_registry", arguments).await.unwrap();
    assert_eq!((&told["language"], &told["version"]), (&Value::Null, &json!("4.0")));
    assert_eq!(told["secrets_needed"], json!(["FOUR_TOKEN"]));
    let notes = told["notes"].to_string();
    for words in ["described and not pulled", "no public address", "the variables REGION"] {
        assert!(notes.contains(words), "{notes}");
    }
}

#[tokio::test]
async fn templates_of_the_registry_keep_their_words_and_their_secrets() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let headers = json!([
        {"name": "Authorization", "value": "Bearer {token}", "isSecret": true},
        {"name": "X-Key", "value": "{api_key}", "variables": {"api_key": {"isSecret": true}}},
        {"name": "X-Region", "value": "r-{region}", "variables": {"region": {"default": "eu"}}},
        {"name": "X-Team", "value": "{team}"},
    ]);
    let remote =
        json!({"type": "streamable-http", "url": "https://five.test/mcp", "headers": headers});
    site.offer_servers("five", &[json!({"name": "five", "remotes": [remote]})]);
    let arguments = json!({"package": "five", "namespace": "five"});
    let proposed = manager.call("install_server", arguments).await.unwrap();
    let line = "headers = { \"Authorization\" = \"Bearer ${secret:TOKEN}\", \"X-Key\" = \"${secret:API_KEY}\", \
        \"X-Region\" = \"r-eu\", \"X-Team\" = \"${TEAM}\" }\n";
    assert!(proposed["entry"].as_str().unwrap().ends_with(line), "{proposed}");
    assert_eq!(proposed["secrets"], json!(["TOKEN", "API_KEY"]));
    let npm = |more: Value| {
        let mut package = json!({"registryType": "npm", "identifier": "six"});
        package.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": "six", "packages": [package]})
    };
    for (more, expected) in [
        (json!({"registryBaseUrl": "https://evil.test"}), "comes from another registry"),
        (json!({"runtimeArguments": [{"value": "--x"}]}), "wants arguments for the program"),
        (
            json!({"packageArguments": [{"type": "named", "name": "--token", "isSecret": true, "isRequired": true}]}),
            "wants a secret among its arguments",
        ),
        (
            json!({"package_arguments": [{"value": "--key={key}", "variables": {"key": {"is_secret": true}}}]}),
            "wants a secret among its arguments",
        ),
        (json!({"transport": {"type": "sse"}}), "does not speak over its standard input"),
        (json!({"environmentVariables": [{"name": "A", "value": "{a"}]}), "can't be understood"),
    ] {
        site.offer_servers("six", &[npm(more)]);
        let arguments = json!({"package": "six", "namespace": "six"});
        let error = manager.call("install_server", arguments).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn arguments_of_the_registry_are_filled_like_its_variables() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let package = json!({"registryType": "npm", "identifier": "eight", "package_arguments": [
        {"type": "positional", "value": "--at={region}", "variables": {"region": {"default": "eu"}}},
        {"type": "named", "name": "--team", "value": "{team}"},
        {"type": "named", "name": "--token", "isSecret": true},
    ]});
    site.offer_servers("eight", &[json!({"name": "eight", "packages": [package]})]);
    let arguments = json!({"package": "eight", "namespace": "eight"});
    let proposed = manager.call("install_server", arguments).await.unwrap();
    let line = "args = [\"-y\", \"eight\", \"--at=eu\", \"--team\", \"${TEAM}\"]\n";
    assert!(proposed["entry"].as_str().unwrap().ends_with(line), "{proposed}");
    assert_eq!(proposed["to_fill"], json!(["TEAM"]));
}

#[tokio::test]
async fn variable_that_says_what_runs_or_whence_it_comes_is_not_proposed() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let arguments = json!({"package": "nine", "namespace": "nine"});
    let offer = |name: &str| {
        let variable = json!({"name": name, "value": "x"});
        let package = json!({"registryType": "npm", "identifier": "nine", "environmentVariables": [variable]});
        site.offer_servers("nine", &[json!({"name": "nine", "packages": [package]})]);
    };
    for name in [
        "PATH",
        "LD_AUDIT",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "UV_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "NPM_CONFIG_REGISTRY",
        "npm_config_registry",
        "DOCKER_HOST",
        "NODE_OPTIONS",
        "BASH_ENV",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "XDG_CONFIG_HOME",
        "https_proxy",
        "HOME",
    ] {
        offer(name);
        let error = manager.call("install_server", arguments.clone()).await.unwrap_err();
        assert!(error.contains(&format!("`{name}`, which is refused")), "{name}: {error}");
    }
    for name in ["NODE_ENV", "GITHUB_TOKEN", "UVICORN_PORT", "LDAP_URL", "PATHS"] {
        offer(name);
        let proposed = manager.call("install_server", arguments.clone()).await.unwrap();
        let entry = proposed["entry"].as_str().unwrap();
        assert!(entry.contains(&format!("{name} = \"x\"")), "{entry}");
    }
}

#[tokio::test]
async fn package_that_several_servers_offer_is_taken_from_none() {
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let offer = |name: &str| json!({"name": name, "packages": [{"registryType": "npm", "identifier": "@a/seven", "version": "1"}]});
    site.offer_servers("%40a%2Fseven", &[]);
    site.offer_servers("seven", &[offer("io.evil/seven"), offer("io.github.a/seven")]);
    let arguments = json!({"package": "@a/seven", "namespace": "seven"});
    let error = manager.call("install_server", arguments).await.unwrap_err();
    assert!(
        error.contains(
            "several servers of the registry offer `@a/seven`: io.evil/seven, io.github.a/seven"
        ),
        "{error}"
    );
    site.offer_servers("io.github.a%2Fseven", &[offer("io.github.a/seven")]);
    let arguments = json!({"package": "io.github.a/seven", "namespace": "seven"});
    let proposed = manager.call("install_server", arguments).await.unwrap();
    assert_eq!(proposed["server"], "io.github.a/seven");
}
