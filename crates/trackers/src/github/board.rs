//! A project of GitHub as the board of the issues: one of its single-select fields is the state.

use std::collections::HashMap;

use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, text};

/// Most items of a project that are read, in pages of 100.
const MAX_PAGES: usize = 100;
/// Field of new projects.
const FIELD: &str = "Status";

const ITEMS: &str = "query($owner: String!, $number: Int!, $field: String!, $after: String) { \
repositoryOwner(login: $owner) { ... on ProjectV2Owner { projectV2(number: $number) { \
items(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { \
fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } } \
content { ... on Issue { number repository { nameWithOwner } } } } } } } } }";

const ITEM: &str = "query($owner: String!, $number: Int!, $field: String!, $user: String!, $name: String!, $issue: Int!) { \
repositoryOwner(login: $owner) { ... on ProjectV2Owner { projectV2(number: $number) { id \
field(name: $field) { ... on ProjectV2SingleSelectField { id options { id name } } } } } } \
repository(owner: $user, name: $name) { issue(number: $issue) { id projectItems(first: 50) { nodes { id project { id } \
fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } } } } } } }";

const ADD: &str = "mutation($project: ID!, $content: ID!) { \
addProjectV2ItemById(input: { projectId: $project, contentId: $content }) { item { id } } }";

const SET: &str = "mutation($project: ID!, $item: ID!, $field: ID!, $option: String!) { \
updateProjectV2ItemFieldValue(input: { projectId: $project, itemId: $item, fieldId: $field, \
value: { singleSelectOptionId: $option } }) { projectV2Item { id } } }";

/// The project, and the repository whose issues count.
pub(super) struct Board {
    owner: String,
    number: u64,
    field: String,
    repository: String,
}

/// An issue on the board.
struct Item {
    project: String,
    /// Id of the issue itself.
    content: String,
    /// `None` if it is not on the board.
    item: Option<String>,
    field: String,
    /// Ids and names of the states.
    options: Vec<(String, String)>,
    status: Option<String>,
}

impl Board {
    /// The project that a workflow names as `tracker.provider.project_number`.
    pub(super) fn of(config: &TrackerConfig) -> Result<Option<Self>, TrackerError> {
        let setting = |name: &str| config.settings.get(name);
        let Some(number) = setting("project_number") else { return Ok(None) };
        let number = number.as_u64().or_else(|| number.as_str()?.parse().ok());
        let Some(number) = number.filter(|number| *number > 0) else {
            let message = "`tracker.provider.project_number` must be the number of a project";
            return Err(TrackerError::new(TrackerErrorKind::InvalidConfig, message));
        };
        let named = |name: &str| setting(name).and_then(Value::as_str).map(str::to_owned);
        let owner = config.project.split('/').next().unwrap_or_default().to_owned();
        Ok(Some(Self {
            owner: named("project_owner").unwrap_or(owner),
            number,
            field: named("status_field").unwrap_or_else(|| FIELD.to_owned()),
            repository: config.project.clone(),
        }))
    }

    fn missing(&self) -> TrackerError {
        let message = format!("`{}` has no project with the number {}", self.owner, self.number);
        TrackerError::new(TrackerErrorKind::MissingProject, message)
    }

    /// States of all issues of the repository that are on the board.
    pub(super) async fn statuses(&self, api: &Api) -> Result<HashMap<u64, String>, TrackerError> {
        let (mut found, mut after) = (HashMap::new(), Value::Null);
        for _ in 0..MAX_PAGES {
            let variables = json!({
                "owner": self.owner, "number": self.number, "field": self.field, "after": after,
            });
            let data = api.graphql(ITEMS, variables).await?;
            let items = &data["repositoryOwner"]["projectV2"]["items"];
            let nodes = items["nodes"].as_array().ok_or_else(|| self.missing())?;
            let ours = nodes.iter().filter(|item| {
                let repository = text(&item["content"]["repository"], "nameWithOwner");
                repository.eq_ignore_ascii_case(&self.repository)
            });
            found.extend(ours.filter_map(|item| {
                let status = item["fieldValueByName"]["name"].as_str()?;
                Some((item["content"]["number"].as_u64()?, status.to_owned()))
            }));
            if items["pageInfo"]["hasNextPage"] != true {
                break;
            }
            after = items["pageInfo"]["endCursor"].clone();
        }
        Ok(found)
    }

    /// State of one issue, if it is on the board.
    pub(super) async fn status(&self, api: &Api, issue: u64) -> Result<Option<String>, TrackerError> {
        Ok(self.item(api, issue).await?.status)
    }

    async fn item(&self, api: &Api, issue: u64) -> Result<Item, TrackerError> {
        let (user, name) = self.repository.split_once('/').unwrap_or_default();
        let variables = json!({
            "owner": self.owner, "number": self.number, "field": self.field,
            "user": user, "name": name, "issue": issue,
        });
        let data = api.graphql(ITEM, variables).await?;
        let (project, content) = (&data["repositoryOwner"]["projectV2"], &data["repository"]["issue"]);
        if project.is_null() {
            return Err(self.missing());
        }
        let field = &project["field"];
        if field["id"].is_null() {
            let message = format!("the project {} has no field `{}` with choices", self.number, self.field);
            return Err(TrackerError::new(TrackerErrorKind::InvalidConfig, message));
        }
        let options = field["options"].as_array().into_iter().flatten();
        let items = content["projectItems"]["nodes"].as_array().into_iter().flatten();
        let own = items.into_iter().find(|item| item["project"]["id"] == project["id"]);
        let status = own.and_then(|item| item["fieldValueByName"]["name"].as_str());
        Ok(Item {
            project: text(project, "id"),
            content: text(content, "id"),
            item: own.map(|item| text(item, "id")),
            field: text(field, "id"),
            options: options.map(|option| (text(option, "id"), text(option, "name"))).collect(),
            status: status.map(str::to_owned),
        })
    }

    /// Moves an issue to a state. One that is not on the board is put there.
    pub(super) async fn set(&self, api: &Api, issue: u64, state: &str) -> Result<(), TrackerError> {
        let item = self.item(api, issue).await?;
        if item.status.as_ref().is_some_and(|status| status.eq_ignore_ascii_case(state)) {
            return Ok(());
        }
        let option = item.options.iter().find(|(_, name)| name.to_lowercase() == state.to_lowercase());
        let Some((option, _)) = option else {
            let names: Vec<&str> = item.options.iter().map(|(_, name)| name.as_str()).collect();
            let message =
                format!("the field `{}` has no choice `{state}`; it has: {}", self.field, names.join(", "));
            return Err(TrackerError::new(TrackerErrorKind::Payload, message));
        };
        let own = match item.item {
            Some(own) => own,
            None => {
                let added =
                    api.graphql(ADD, json!({ "project": item.project, "content": item.content })).await?;
                text(&added["addProjectV2ItemById"]["item"], "id")
            }
        };
        let variables =
            json!({ "project": item.project, "item": own, "field": item.field, "option": option });
        api.graphql(SET, variables).await.map(drop)
    }
}
