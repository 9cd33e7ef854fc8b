//! Habits of client programs: whether one lists again when it is told that its tools are other ones, and how soon.
//!
//! The reply of a control tool waits for that. What was observed corrects the profile of the program, for the next of its
//! sessions: the one that goes on keeps what it was shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use catalog::profile::{Lists, Profile};
use foldhash::HashMap;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::Gateway;
use crate::client::Client;
use crate::limits::{
    IGNORED_NOTICES_MAX, NAME_BYTES_MAX, PROGRAMS_MAX, RELISTED_GRACE, RELISTING_MAX,
};

/// What one client does.
#[derive(Debug, Default)]
pub struct Habits {
    /// What the program calls itself.
    program: OnceLock<Box<str>>,
    /// Counts the lists of tools that it has asked for.
    lists: watch::Sender<u64>,
    /// Whether it was told of other tools and has neither listed nor called any since.
    is_expected: AtomicBool,
    told: Mutex<Told>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// How often it was told.
    times: u64,
    /// When it was told last, and how often it had listed by then.
    last: Option<(Instant, u64)>,
    /// How long it took to list again, the last time that it did.
    delay: Option<Duration>,
    /// How often it has called something without.
    ignored: u32,
}

/// What was observed of all clients of one program.
#[derive(Clone, Copy, Debug)]
enum Observed {
    Relists { times: u32, delay: Duration },
    Never,
}

/// What was observed of programs, by what they call themselves.
#[derive(Debug, Default)]
pub struct Programs(Mutex<HashMap<Box<str>, Observed>>);

impl Habits {
    pub(crate) fn name(&self, program: &str) {
        if program.len() <= NAME_BYTES_MAX && !program.is_empty() {
            _ = self.program.set(program.into());
        }
    }

    /// How often it has listed its tools.
    pub(crate) fn lists(&self) -> u64 {
        *self.lists.borrow()
    }

    /// How often it was told of other tools.
    pub(crate) fn times_told(&self) -> u64 {
        self.told().times
    }

    /// Notes that it was told of other tools; it had listed so often before.
    pub(crate) fn note_told(&self, lists: u64) {
        let mut told = self.told();
        told.times += 1;
        told.last = Some((Instant::now(), lists));
        self.is_expected.store(true, Ordering::Relaxed);
    }

    /// How long a reply waits for the client to list again.
    fn wait(&self, profile: &Profile) -> Duration {
        let told = *self.told();
        match told.delay {
            Some(delay) => profile.reply_wait.max(patient(delay)),
            None if told.ignored >= IGNORED_NOTICES_MAX => Duration::ZERO,
            None => profile.reply_wait,
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to wait for a client that took so long before.
fn patient(delay: Duration) -> Duration {
    (delay * 2).min(RELISTING_MAX)
}

impl Observed {
    fn correct(self, profile: &mut Profile) {
        match (self, profile.lists) {
            (Observed::Never, _) => {
                profile.lists = Lists::Once;
                profile.reply_wait = Duration::ZERO;
            }
            (Observed::Relists { delay, .. }, Lists::Unknown) => {
                profile.lists = Lists::AtOnce;
                profile.reply_wait = profile.reply_wait.max(patient(delay));
            }
            // Once may be chance.
            (Observed::Relists { times: 2.., delay }, Lists::Once) => {
                profile.lists = Lists::AtOnce;
                profile.reply_wait = Profile::default().reply_wait.max(patient(delay));
            }
            _ => {}
        }
    }
}

impl Programs {
    pub(crate) fn correct(&self, program: &str, profile: &mut Profile) {
        let observed = self.observed().get(program).copied();
        if let Some(observed) = observed {
            observed.correct(profile);
        }
    }

    fn observed(&self) -> MutexGuard<'_, HashMap<Box<str>, Observed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, program: Option<&str>, delay: Option<Duration>) {
        let Some(program) = program else { return };
        let mut programs = self.observed();
        if programs.len() >= PROGRAMS_MAX && !programs.contains_key(program) {
            return;
        }
        let before = match programs.get(program) {
            Some(Observed::Relists { times, .. }) => *times,
            Some(Observed::Never) | None => 0,
        };
        let observed = match delay {
            Some(delay) => Observed::Relists { times: before.saturating_add(1), delay },
            // It does, if not each time.
            None if before > 0 => return,
            None => Observed::Never,
        };
        tracing::debug!(client = program, ?observed, "when it lists again");
        programs.insert(program.into(), observed);
    }
}

impl Gateway {
    /// Notes that a client lists its tools.
    pub(crate) fn note_listing(&self, client: &Client) {
        let habits = &client.habits;
        let was_expected = habits.is_expected.swap(false, Ordering::Relaxed);
        habits.lists.send_modify(|lists| *lists += 1);
        let mut told = habits.told();
        let delay = told.last.take().map(|(since, _)| since.elapsed());
        let Some(delay) = delay.filter(|delay| was_expected && *delay <= RELISTING_MAX) else {
            return;
        };
        told.delay = Some(delay);
        drop(told);
        self.0.programs.note(habits.program.get().map(|name| &**name), Some(delay));
    }

    /// Notes that a client calls something. On the way of every call, so that it costs nothing as a rule.
    #[inline]
    pub(crate) fn note_call(&self, client: &Client) {
        if client.habits.is_expected.load(Ordering::Relaxed) {
            self.note_ignored(client);
        }
    }

    #[cold]
    fn note_ignored(&self, client: &Client) {
        let habits = &client.habits;
        habits.is_expected.store(false, Ordering::Relaxed);
        let mut told = habits.told();
        told.ignored += 1;
        let never = told.delay.is_none() && told.ignored >= IGNORED_NOTICES_MAX;
        drop(told);
        if never {
            self.0.programs.note(habits.program.get().map(|name| &**name), None);
        }
    }

    /// Waits until a client that was just told of other tools has listed them, for at most its time.
    pub(crate) async fn relisted(&self, client: &Client) {
        let habits = &client.habits;
        let wait = habits.wait(&client.view().scope().profile);
        let Some((_, lists)) = habits.told().last else { return };
        let mut listed = habits.lists.subscribe();
        let has_listed = async {
            tokio::select! {
                listed = timeout(wait, listed.wait_for(|now| *now > lists)) => {
                    matches!(listed, Ok(Ok(_)))
                }
                () = client.leaving.cancelled() => false,
                () = self.0.winding_down.cancelled() => false,
            }
        };
        if !wait.is_zero() && has_listed.await {
            // It has to take in what it was answered.
            sleep(RELISTED_GRACE).await;
        }
    }
}
