//! What the operator says of clients: whom their selections belong to, and by what they are told apart.

use catalog::profile::{Belongs, Profiles, ToldApart};

use crate::fault::Faults;
use crate::reader::Section;

pub fn read(top: &mut Section<'_>, faults: &mut Faults<'_>) -> Profiles {
    let owners = [("session", Belongs::Session), ("principal", Belongs::Principal)];
    let selection = top.get("selection").and_then(|value| value.choice(&owners, faults));
    let ways = [
        ("no", ToldApart::No),
        ("name", ToldApart::ByName),
        ("id", ToldApart::ById),
        ("required-id", ToldApart::ByRequiredId),
    ];
    let told_apart = top.get("distinguish_clients").and_then(|value| value.choice(&ways, faults));
    Profiles { selection, told_apart: told_apart.unwrap_or_default(), ..Profiles::default() }
}
