//! All connections of the door, so that one which asks nothing gives its place to a newcomer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::traffic::Traffic;
use crate::limits::ACCEPT_PAUSE;

/// The connections that are open; there are only so many places.
pub struct Crowd {
    places: Arc<Semaphore>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    last: u64,
    open: HashMap<u64, (Traffic, CancellationToken)>,
}

/// A place in the crowd, until it is dropped.
pub struct Member {
    crowd: Arc<Crowd>,
    number: u64,
    pub traffic: Traffic,
    /// Cancelled when the place is needed for somebody else.
    pub leave: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Crowd {
    pub fn new(places: usize) -> Arc<Crowd> {
        let places = Arc::new(Semaphore::new(places));
        Arc::new(Crowd { places, members: Mutex::default() })
    }

    /// Takes a place. Where all are taken, whoever has asked nothing for longest has to leave;
    /// where all have asked something, it waits.
    pub async fn join(self: &Arc<Self>) -> Member {
        let place = loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                break place;
            }
            self.make_room();
            let freed = timeout(ACCEPT_PAUSE, Arc::clone(&self.places).acquire_owned()).await;
            if let Ok(Ok(place)) = freed {
                break place;
            }
        };
        let (traffic, leave) = (Traffic::new(), CancellationToken::new());
        let mut members = self.members();
        members.last += 1;
        let number = members.last;
        members.open.insert(number, (traffic.clone(), leave.clone()));
        Member { crowd: Arc::clone(self), number, traffic, leave, _place: place }
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.members().open.len()
    }

    fn make_room(&self) {
        let members = self.members();
        let staying = members.open.values().filter(|(_, leave)| !leave.is_cancelled());
        let idle = staying.filter_map(|(traffic, leave)| Some((traffic.idle_since()?, leave)));
        if let Some((_, leave)) = idle.min_by_key(|(since, _)| *since) {
            leave.cancel();
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crowd.members().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::Crowd;

    #[tokio::test(start_paused = true)]
    async fn newcomer_gets_the_place_of_who_was_idle_for_longest() {
        // L18
        let crowd = Crowd::new(3);
        let (busy, first, second) = (crowd.join().await, crowd.join().await, crowd.join().await);
        let request = busy.traffic.begin();
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(first.traffic.begin()); // It has asked just now.
        let leave = second.leave.clone();
        let leaving = tokio::spawn(async move {
            leave.cancelled().await;
            drop(second);
        });
        let newcomer = crowd.join().await;
        leaving.await.unwrap();
        assert!(!busy.leave.is_cancelled() && !first.leave.is_cancelled());
        assert_eq!(crowd.count(), 3);
        // Who is being served is not sent away.
        let requests = (first.traffic.begin(), newcomer.traffic.begin());
        assert!(timeout(Duration::from_mins(1), crowd.join()).await.is_err());
        assert!([&busy, &first, &newcomer].iter().all(|member| !member.leave.is_cancelled()));
        drop((request, requests));
    }
}
