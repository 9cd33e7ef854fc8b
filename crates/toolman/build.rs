//! Lays the functions that a start and a call need side by side, in optimized builds.
//!
//! The kernel maps 64 KiB around every page of the program that is touched, so functions that are scattered cost
//! memory and page faults. `layout.txt` has their names as the linker knows them, without hashes; one that is not
//! there any more is passed over. `cargo xtask layout` makes it anew.

use std::env;
use std::fs;
use std::path::Path;

const LAYOUT: &str = "layout.txt";

fn main() {
    println!("cargo:rerun-if-changed={LAYOUT}");
    let is_optimized = env::var("OPT_LEVEL").is_ok_and(|level| level != "0");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    // It takes no linker scripts.
    let is_mold = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("mold"));
    if !is_optimized || !is_linux || is_mold {
        return;
    }
    let names = fs::read_to_string(LAYOUT).expect("the layout lies beside this file");
    let sections: Vec<String> = names.lines().map(|name| format!("*(.text.{name})")).collect();
    let sections = sections.join("\n");
    let script = format!("SECTIONS {{ .text.first : {{\n{sections}\n}} }}\nINSERT BEFORE .text;\n");
    let folder = env::var_os("OUT_DIR").expect("cargo names a folder for what is made");
    let path = Path::new(&folder).join("layout.ld");
    fs::write(&path, script).expect("the folder of cargo can be written to");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", path.display());
}
