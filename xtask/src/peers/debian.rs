//! Debian's packages: what a bare machine lacks is installed, where that needs no asking.
//!
//! Only as root, as in a container or on a CI machine; elsewhere the developer is told what to do.

use std::process::Command;

use super::site::Site;

/// Installs the packages, or says why it did not even try.
pub fn install(site: &Site, packages: &[&str]) -> Result<(), String> {
    let advice = format!("on Debian: `apt-get install {}`", packages.join(" "));
    let is_root = site.run(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    let has_apt = site.run(Command::new("apt-get").arg("--version")).is_ok();
    if !is_root || !has_apt {
        return Err(advice);
    }
    eprintln!("xtask: installing {} with apt-get", packages.join(", "));
    // An old list of packages is better than none: the second command tells whether it was enough.
    let updated = site.run(apt_get().arg("update"));
    let installed =
        site.run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages));
    match (updated, installed) {
        (_, Ok(_)) => Ok(()),
        (Err(problem), Err(_)) | (Ok(_), Err(problem)) => Err(format!("{problem}\n{advice}")),
    }
}

fn apt_get() -> Command {
    let mut apt_get = Command::new("apt-get");
    apt_get.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
    apt_get
}
