//! Adds instructions to a session that its work reveals.

use std::path::PathBuf;

use hangar_agent::driver::InstructionFinder;
use hangar_agent::session::Reminder;

use super::instructions::on_demand::OnDemand;

impl InstructionFinder for OnDemand {
    fn discover(&mut self, touched: Vec<(PathBuf, String)>) -> Vec<Reminder> {
        let mut reminders = Vec::new();
        for (file, tool) in touched {
            let found = self.touch(&file).into_iter();
            reminders.extend(found.map(|found| Reminder {
                source: found.source,
                trigger_file: file.display().to_string(),
                trigger_tool: tool.clone(),
                text: found.text,
            }));
        }
        reminders
    }

    fn anew(&self) -> Box<dyn InstructionFinder> {
        Box::new(OnDemand::anew(self))
    }
}
