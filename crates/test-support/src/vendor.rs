//! A simulated vendor on loopback that belongs to one test, and fails it on any refusal that the test did not expect.

use hangar_simulators::{Exchange, Profile, Scenario, Server, Simulator, UsageTotals};

pub struct VendorServer {
    profile: Profile,
    server: Server,
}

impl VendorServer {
    /// The vendor of this name, which does what the markers in its prompts say.
    pub fn start(name: &str) -> Self {
        let profile = Profile::find(name).unwrap_or_else(|| panic!("`{name}` is not a simulated vendor"));
        let simulator = profile.simulator().expect("the vendor's tables are valid");
        let server = Server::of(simulator).expect("a free port on loopback");
        Self { profile, server }
    }

    /// The vendor of this name with a scenario in TOML.
    pub fn with_scenario(name: &str, scenario: &str) -> Self {
        let server = Self::start(name);
        server.play(scenario);
        server
    }

    /// Goes on with another scenario.
    pub fn play(&self, scenario: &str) {
        self.simulator().play(Scenario::parse(scenario).expect("a valid scenario"));
    }

    /// Base URL of the provider, for a client.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.server.url(self.profile.name), self.profile.base_path)
    }

    pub fn profile(&self) -> Profile {
        self.profile
    }

    pub fn simulator(&self) -> &Simulator {
        self.server.simulator(self.profile.name).expect("the server has this simulator")
    }

    /// The requests for answers so far, oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.simulator().exchanges()
    }

    /// The totals. Panics with all refusals and failed expectations of the scenario.
    pub fn finish(&self) -> UsageTotals {
        match self.simulator().finish() {
            Ok(totals) => totals,
            Err(failures) => panic!("the simulated vendor {} says:\n{failures}", self.profile.name),
        }
    }
}
