//! Which tools of a worker may be seen and called, by their names. TD-18
//!
//! Sources do not tell all names, so this is asked of what a worker reports as well.

use std::fmt;
use std::sync::Arc;

/// A rule over names; all are admitted unless another one is given.
#[derive(Clone)]
pub struct Admission {
    /// What tells it from others.
    written: String,
    admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Admission {
    /// The rule that is written so.
    pub fn new(
        written: String,
        admits: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Admission {
        Admission { written, admits: Arc::new(admits) }
    }

    pub fn admits(&self, name: &str) -> bool {
        (self.admits)(name)
    }
}

impl Default for Admission {
    fn default() -> Admission {
        Admission::new(String::new(), |_| true)
    }
}

impl PartialEq for Admission {
    fn eq(&self, other: &Admission) -> bool {
        self.written == other.written
    }
}

impl Eq for Admission {}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "Admission({})", self.written)
    }
}
