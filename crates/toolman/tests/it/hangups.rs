//! SIGHUP, and terminals that go away.

use std::process::Stdio;
use std::time::Duration;

use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::processes::{descendants, is_alive, kill, survivors};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::up::Up;
use crate::{TOOLMAN, folder};

const WITHIN: Duration = Duration::from_secs(5);

fn one_server() -> Folder {
    folder("active_toolsets = [\"*\"]", &[("a", "echo")])
}

#[tokio::test]
async fn stdio_ends_in_good_order_when_it_is_hung_up() {
    let folder = one_server();
    let mut toolman = folder.start().await;
    let below = descendants(toolman.pid);
    assert!(below.len() >= 2);
    kill("-HUP", toolman.pid);
    assert!(toolman.ended().await.success(), "an orderly end");
    assert!(survivors(&below, WITHIN).is_empty());
}

#[tokio::test]
async fn up_without_folders_takes_a_hangup_for_a_question_about_nothing() {
    let folder = one_server();
    let mut up = Up::start(&folder).await;
    kill("-HUP", up.pid());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(is_alive(up.pid()));
    up.initialize().await;
}

/// A terminal in the hands of a small Python program, and what runs in it.
struct Terminal {
    child: Child,
    orders: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    pid: u32,
}

/// Starts the command in a terminal of its own; says its process id, then the lines that it prints.
const KEEPER: &str = r#"
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
print(pid, flush=True)
seen = b""
while b"Stop with" not in seen and b"toolman serves" not in seen:
    seen += os.read(master, 65536)
print("serving", flush=True)
sys.stdin.readline()
os.close(master)
print("closed", flush=True)
sys.stdin.readline()
"#;

impl Terminal {
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    async fn start(folder: &Folder, arguments: &[&str]) -> Terminal {
        let inner = folder.command(&[]);
        let mut command = tokio::process::Command::new("python3");
        command.args(["-c", KEEPER]).args(arguments).current_dir(folder.path()).kill_on_drop(true);
        for (name, value) in inner.as_std().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut terminal = Terminal { child, orders, said, pid: 0 };
        terminal.pid = terminal.next().await.parse().unwrap();
        assert_eq!(terminal.next().await, "serving");
        terminal
    }

    async fn next(&mut self) -> String {
        timeout(PATIENCE, self.said.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// Closes the terminal, as its window would.
    async fn close(&mut self) {
        self.orders.write_all(b"\n").await.unwrap();
        assert_eq!(self.next().await, "closed");
    }
}

const UP: [&str; 4] = [TOOLMAN, "up", "--listen", "127.0.0.1:0"];

#[tokio::test]
async fn up_ends_with_its_terminal_and_leaves_nobody() {
    let below_a_shell = [&["sh", "-c", "\"$@\"; true", "sh"][..], &UP].concat();
    for (head, arguments) in [("", UP.to_vec()), ("[dock]\n", UP.to_vec()), ("", below_a_shell)] {
        let folder = folder(head, &[("a", "echo")]);
        let mut terminal = Terminal::start(&folder, &arguments).await;
        let mut all = descendants(terminal.pid);
        assert!(all.len() >= 2);
        all.push(terminal.pid);
        if arguments[0] == TOOLMAN {
            kill("-HUP", terminal.pid);
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(is_alive(terminal.pid), "the terminal is there, so that asks for a reload");
        }
        terminal.close().await;
        assert!(survivors(&all, WITHIN).is_empty(), "{arguments:?} {head:?}");
        terminal.child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn serve_and_what_was_started_with_nohup_outlive_their_terminal() {
    let serve = vec![TOOLMAN, "serve", "--listen", "127.0.0.1:0"];
    let nohup = [&["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"][..], &UP].concat();
    for arguments in [serve, nohup] {
        let folder = one_server();
        let mut terminal = Terminal::start(&folder, &arguments).await;
        terminal.close().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(is_alive(terminal.pid), "{arguments:?}");
        kill("-TERM", terminal.pid);
        assert!(survivors(&[terminal.pid], WITHIN).is_empty());
        terminal.child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn serve_says_that_there_is_nothing_to_reload() {
    let folder = one_server();
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut banner = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(PATIENCE, banner.next_line()).await.unwrap().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    kill("-HUP", child.id().unwrap());
    let line = timeout(PATIENCE, log.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.contains("SIGHUP reloads folders of Python tools, and none are served"), "{line}");
    assert!(is_alive(child.id().unwrap()));
}
