//! The Python of a folder, and its packages: found if they are there, made if somebody waits for it.
//!
//! What could not be made is not tried again at once; the former environment is used meanwhile, if there is one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use config::dock::Folder;
use tokio::sync::Semaphore;
use upstream::limits::ENVIRONMENT_RETRY_AFTER;
use upstream::python::environment::{Interpreter, Wish, former};
use upstream::python::runtime;

use super::{AT_ONCE, Site, Tell};

/// What is known of Pythons and environments.
pub(super) struct Environments {
    /// What was asked before, by the program that was asked.
    interpreters: Mutex<HashMap<PathBuf, Interpreter>>,
    /// What could not be built: when, and why.
    failures: Mutex<HashMap<PathBuf, (Instant, String)>>,
    /// Held by those that build.
    builders: Semaphore,
}

impl Default for Environments {
    fn default() -> Environments {
        let builders = Semaphore::new(AT_ONCE);
        Environments { interpreters: Mutex::default(), failures: Mutex::default(), builders }
    }
}

/// The Python that runs a folder's tools.
pub(super) struct Found {
    pub python: PathBuf,
    /// Whether packages were installed for it just now.
    pub is_new: bool,
    /// Whether it belongs to the environment before.
    pub is_former: bool,
    /// Whether there is nothing left to be done.
    pub is_whole: bool,
    /// Why it is not the one that is wanted.
    pub problem: Option<String>,
}

impl Site {
    /// Which Python a program is. Our own files are compiled for it meanwhile.
    pub(super) async fn interpreter(
        &self,
        program: &Path,
        runtime: &Path,
    ) -> Result<Interpreter, String> {
        let known =
            || self.environments.interpreters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = known().get(program).cloned() {
            return Ok(interpreter);
        }
        let found = Interpreter::probe(&self.spawner, program).await?;
        known().insert(program.to_owned(), found.clone());
        let (spawner, runtime) = (Arc::clone(&self.spawner), runtime.to_owned());
        let interpreter = found.clone();
        tokio::spawn(async move { runtime::compile(&spawner, &interpreter, &runtime).await });
        Ok(found)
    }

    /// The Python of the environment that a folder had before, if it can be used still. Which one it is is not known.
    pub(super) fn former(&self, folder: &Folder) -> Option<Interpreter> {
        let path = former(&self.data.join("venvs").join(folder.name.as_str()))?;
        Some(Interpreter { path, version: String::new(), tag: String::new() })
    }

    /// The Python of a folder's own environment; the former one, or a plain one, if it can't be had. Packages are
    /// installed only if somebody hears of that.
    pub(super) async fn environment(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        tell: Option<Tell<'_>>,
    ) -> Found {
        let (parent, uv) =
            (self.data.join("venvs").join(folder.name.as_str()), self.data.join("uv"));
        let other = |is_whole: bool| {
            let former = former(&parent);
            let is_former = former.is_some();
            let python = former.unwrap_or_else(|| interpreter.path.clone());
            Found { python, is_new: false, is_former, is_whole, problem: None }
        };
        let failed = |problem: &str| {
            let found = other(true);
            let rest = if found.is_former { "the former ones are used" } else { "it has none" };
            let problem = Some(format!("its packages are not installed, {rest}: {problem}"));
            Found { problem, ..found }
        };
        if interpreter.version.is_empty() {
            return other(true);
        }
        let Some(packages) = &folder.packages else {
            return failed("the file that names them is refused");
        };
        let time_max = self.dock.install_timeout;
        let wish = Wish { interpreter, packages, parent: &parent, uv: &uv, time_max };
        let found = wish.find();
        if let Some(problem) = self.failed_lately(&wish.target()).filter(|_| found == Ok(None)) {
            return failed(&problem);
        }
        let built = match (found, tell) {
            // One without packages is there in a moment.
            (Ok(None), None) if packages.is_empty() => self.build(&wish, &|_| {}).await,
            (Ok(None), None) => return other(false),
            (Ok(None), Some(tell)) => self.build(&wish, tell).await,
            (Ok(Some(environment)), _) => Ok(environment),
            (Err(problem), _) => Err(problem),
        };
        match built {
            Ok(environment) => {
                let (python, is_new) =
                    (environment.python, environment.is_new && !packages.is_empty());
                Found { python, is_new, is_former: false, is_whole: true, problem: None }
            }
            Err(problem) => failed(&problem),
        }
    }

    async fn build(
        &self,
        wish: &Wish<'_>,
        tell: Tell<'_>,
    ) -> Result<upstream::python::environment::Environment, String> {
        let _turn = self.environments.builders.acquire().await;
        let began = Instant::now();
        let built = wish.fulfil(&self.spawner, tell).await;
        match &built {
            Ok(_) if wish.packages.is_empty() => {}
            Ok(_) => tell(&format!("installed in {:.1} s", began.elapsed().as_secs_f64())),
            Err(problem) => {
                let failure = (Instant::now(), problem.clone());
                self.failures().insert(wish.target(), failure);
            }
        }
        built
    }

    /// Why this could not be built a moment ago, if it was tried.
    fn failed_lately(&self, target: &Path) -> Option<String> {
        let mut failures = self.failures();
        failures.retain(|_, (then, _)| then.elapsed() < ENVIRONMENT_RETRY_AFTER);
        let (then, problem) = failures.get(target)?;
        let left = ENVIRONMENT_RETRY_AFTER.saturating_sub(then.elapsed()).as_secs();
        Some(format!("{problem}\n(a reload tries it again in {left} s at the earliest)"))
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Instant, String)>> {
        self.environments.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
