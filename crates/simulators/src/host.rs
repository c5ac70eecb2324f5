//! A host that speaks several wires, each at its own path.

use serde_json::json;

use crate::history::History;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scenario::Failure;
use crate::stream::Answer;
use crate::vendor::{Accepted, Reply, Vendor};

/// Wires by the end of the path that they are asked at. A path that fits none goes to the first.
pub struct Host {
    wires: Vec<(&'static str, Box<dyn Vendor>)>,
}

impl Host {
    pub fn new(wires: Vec<(&'static str, Box<dyn Vendor>)>) -> Self {
        Self { wires }
    }

    fn place(&self, request: &Request) -> usize {
        self.wires.iter().position(|(path, _)| request.path.ends_with(path)).unwrap_or(0)
    }

    /// The wire that accepted a request, and what it accepted.
    fn inner(&self, accepted: &Accepted) -> (&dyn Vendor, Accepted) {
        let place = accepted.context["wire"].as_u64().unwrap_or(0) as usize;
        let context = accepted.context["inner"].clone();
        (&*self.wires[place].1, Accepted { context, ..accepted.clone() })
    }
}

impl Vendor for Host {
    fn aside(&self, request: &Request) -> Option<Answer> {
        self.wires.iter().find_map(|(_, wire)| wire.aside(request))
    }

    fn check(&self, request: &Request, history: &History) -> Result<Accepted, Refusal> {
        let place = self.place(request);
        let accepted = self.wires[place].1.check(request, history)?;
        let context = json!({"wire": place, "inner": accepted.context});
        Ok(Accepted { context, ..accepted })
    }

    fn fail(&self, accepted: &Accepted, failure: &Failure) -> Refusal {
        let (wire, accepted) = self.inner(accepted);
        wire.fail(&accepted, failure)
    }

    fn encode(&self, accepted: &Accepted, reply: &Reply, history: &mut History) -> Answer {
        let (wire, accepted) = self.inner(accepted);
        wire.encode(&accepted, reply, history)
    }
}
