//! A project of the simulated GitHub, whose field `Status` has the states of issues.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::graphql::{Field, selected};
use crate::forge::{ForgeServer, Repository};

/// Number of the project.
const NUMBER: u64 = 5;

pub(in crate::forge) struct Board {
    options: Vec<String>,
    /// Issues that are on it, with their states.
    items: BTreeMap<u64, Option<String>>,
}

impl ForgeServer {
    /// Creates the project 5 of `octo`, with these states.
    pub fn board(&self, options: &[&str]) {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        self.repository().board = Some(Board { options, items: BTreeMap::new() });
    }

    /// Puts an issue on the board.
    pub fn put_on_board(&self, number: u64, status: &str) {
        let mut repository = self.repository();
        repository.board.as_mut().expect("a board").items.insert(number, Some(status.to_owned()));
    }

    /// State of an issue on the board.
    pub fn board_status(&self, number: u64) -> Option<String> {
        self.repository().board.as_ref()?.items.get(&number)?.clone()
    }
}

fn value(status: Option<&String>) -> Value {
    match status {
        Some(name) => json!({ "__typename": "ProjectV2ItemFieldSingleSelectValue", "name": name }),
        None => Value::Null,
    }
}

/// Arguments of a field anywhere below another.
fn number_of(field: &Field) -> Option<u64> {
    let own = (field.name == "projectV2").then(|| field.arguments.get("number").and_then(Value::as_u64));
    own.flatten().or_else(|| field.fields.iter().find_map(number_of))
}

impl Repository {
    pub(super) fn owner_json(&self, field: &Field) -> Result<Value, String> {
        let board = self.board.as_ref().filter(|_| number_of(field) == Some(NUMBER));
        let Some(board) = board else {
            return Err("Could not resolve to a ProjectV2 with the number".to_owned());
        };
        let items = board.items.iter().map(|(number, status)| {
            json!({
                "__typename": "ProjectV2Item", "id": format!("PVTI_{number}"),
                "fieldValueByName": value(status.as_ref()),
                "content": {
                    "__typename": "Issue", "number": number,
                    "repository": { "__typename": "Repository", "nameWithOwner": "octo/app" },
                },
            })
        });
        let options: Vec<Value> = board
            .options
            .iter()
            .map(|name| json!({ "__typename": "ProjectV2SingleSelectFieldOption", "id": format!("o-{name}"), "name": name }))
            .collect();
        let status = json!({ "__typename": "ProjectV2SingleSelectField", "id": "PVTSSF_1", "options": { "__list": options } });
        let project = json!({
            "__typename": "ProjectV2", "id": "PVT_1", "items": items.collect::<Vec<_>>(), "field": status,
        });
        selected(&json!({ "__typename": "Organization", "projectV2": project }), field)
    }

    /// An issue, with its places on boards.
    pub(super) fn issue_node(&self, number: u64) -> Result<Value, String> {
        if !self.issues.contains_key(&number) {
            return Err("Could not resolve to an Issue".to_owned());
        }
        let status = self.board.as_ref().and_then(|board| board.items.get(&number));
        let items = status.map(|status| {
            json!({
                "__typename": "ProjectV2Item", "id": format!("PVTI_{number}"),
                "project": { "__typename": "ProjectV2", "id": "PVT_1" },
                "fieldValueByName": value(status.as_ref()),
            })
        });
        let items: Vec<Value> = items.into_iter().collect();
        Ok(json!({ "__typename": "Issue", "id": format!("I_{number}"), "projectItems": items }))
    }

    pub(super) fn add_item(&mut self, field: &Field) -> Result<Value, String> {
        let input = field.arguments.get("input").cloned().unwrap_or_default();
        let content = input["contentId"].as_str().and_then(|id| id.strip_prefix("I_")?.parse::<u64>().ok());
        let (Some(board), Some(number), true) = (&mut self.board, content, input["projectId"] == "PVT_1")
        else {
            return Err("Could not resolve to a node with the global id".to_owned());
        };
        board.items.entry(number).or_default();
        let item = json!({ "__typename": "ProjectV2Item", "id": format!("PVTI_{number}") });
        selected(&json!({ "__typename": "AddProjectV2ItemByIdPayload", "item": item }), field)
    }

    pub(super) fn set_item(&mut self, field: &Field) -> Result<Value, String> {
        let input = field.arguments.get("input").cloned().unwrap_or_default();
        let unknown = || "Could not resolve to a node with the global id".to_owned();
        let number = input["itemId"].as_str().and_then(|id| id.strip_prefix("PVTI_")?.parse::<u64>().ok());
        let number = number.filter(|_| input["projectId"] == "PVT_1" && input["fieldId"] == "PVTSSF_1");
        let board = self.board.as_mut().ok_or_else(unknown)?;
        let option = input["value"]["singleSelectOptionId"].as_str().and_then(|id| id.strip_prefix("o-"));
        let option = option.filter(|option| board.options.iter().any(|known| known == option));
        let option = option.ok_or("The single select option Id does not belong to the field")?.to_owned();
        let item = number.and_then(|number| board.items.get_mut(&number)).ok_or_else(unknown)?;
        *item = Some(option);
        let item = json!({ "__typename": "ProjectV2Item", "id": input["itemId"] });
        selected(
            &json!({ "__typename": "UpdateProjectV2ItemFieldValuePayload", "projectV2Item": item }),
            field,
        )
    }
}
