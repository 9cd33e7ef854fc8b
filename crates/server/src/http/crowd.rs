//! All connections of the door, so that one which asks nothing gives its place to a newcomer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::traffic::{Clock, Order, Traffic};
use crate::limits::ACCEPT_PAUSE;

/// The connections that are open; there are only so many places.
pub struct Crowd {
    clock: Clock,
    places: Arc<Semaphore>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    last: u64,
    open: HashMap<u64, Traffic>,
}

/// A place in the crowd, until it is dropped.
pub struct Member {
    crowd: Arc<Crowd>,
    number: u64,
    pub traffic: Traffic,
    _place: OwnedSemaphorePermit,
}

impl Crowd {
    pub fn new(places: usize) -> Arc<Crowd> {
        let places = Arc::new(Semaphore::new(places));
        Arc::new(Crowd { clock: Clock::default(), places, members: Mutex::default() })
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
        let traffic = Traffic::new(self.clock.clone());
        let mut members = self.members();
        members.last += 1;
        let number = members.last;
        members.open.insert(number, traffic.clone());
        Member { crowd: Arc::clone(self), number, traffic, _place: place }
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.members().open.len()
    }

    fn make_room(&self) {
        let members = self.members();
        let staying = members.open.values().filter(|traffic| !traffic.is_leaving());
        let idle = staying.filter_map(|traffic| Some((traffic.idle_since()?, traffic)));
        if let Some((_, traffic)) = idle.min_by_key(|(since, _)| *since) {
            traffic.order(Order::Leave);
        }
    }

    /// Lets a tick pass, and ends the connections where nothing goes on.
    pub fn tick(&self) {
        self.clock.tick();
        self.members().open.values().for_each(Traffic::judge);
    }

    /// Closes all connections once their requests are answered.
    pub fn close(&self) {
        self.members().open.values().for_each(|traffic| traffic.order(Order::Close));
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

    use hyper::Version;
    use tokio::time::timeout;

    use super::Crowd;

    #[tokio::test(start_paused = true)]
    async fn newcomer_gets_the_place_of_who_was_idle_for_longest() {
        // L18
        let crowd = Crowd::new(3);
        let (busy, first, second) = (crowd.join().await, crowd.join().await, crowd.join().await);
        let request = busy.traffic.begin(Version::HTTP_11);
        crowd.tick();
        drop(first.traffic.begin(Version::HTTP_11)); // It has asked just now.
        let leaving = tokio::spawn(async move {
            while !second.traffic.is_leaving() {
                tokio::task::yield_now().await;
            }
        });
        let newcomer = crowd.join().await;
        leaving.await.unwrap();
        assert!(!busy.traffic.is_leaving() && !first.traffic.is_leaving());
        assert_eq!(crowd.count(), 3);
        // Who is being served is not sent away.
        let begin = |member: &super::Member| member.traffic.begin(Version::HTTP_11);
        let requests = (begin(&first), begin(&newcomer));
        assert!(timeout(Duration::from_mins(1), crowd.join()).await.is_err());
        assert!([&busy, &first, &newcomer].iter().all(|member| !member.traffic.is_leaving()));
        drop((request, requests));
    }
}
