//! Canvases of a live session that are open: views that its clients and extensions provide.

use hangar_protocol::Body;
use hangar_protocol::data::CanvasOpened;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// Most canvases of a session that are listed; the oldest makes room.
const MOST: usize = 16;

/// An open canvas.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canvas {
    pub instance_id: String,
    pub canvas_id: String,
    /// Extension or client that provides it.
    pub provider: String,
    pub title: Option<String>,
    pub status: Option<String>,
    /// Address of its page; absent while its provider is gone.
    pub url: Option<String>,
}

impl From<CanvasOpened> for Canvas {
    fn from(opened: CanvasOpened) -> Self {
        Self {
            instance_id: opened.instance_id,
            canvas_id: opened.canvas_id,
            provider: opened.extension_name.unwrap_or(opened.extension_id),
            title: opened.title,
            status: opened.status,
            url: opened.url,
        }
    }
}

/// The open canvases of a session, as a fold over its events.
#[derive(Debug, Default)]
pub(crate) struct OpenCanvases {
    open: Vec<Canvas>,
    /// Number of changes.
    revision: u64,
}

impl OpenCanvases {
    pub(crate) fn apply(&mut self, event: &Body) {
        match event {
            Body::CanvasOpened(opened) => self.open(opened.clone()),
            Body::CanvasClosed(closed) => {
                self.open.retain(|canvas| canvas.instance_id != closed.instance_id);
                self.revision += 1;
            }
            Body::CanvasUnavailable(gone) => {
                let canvas = self.open.iter_mut().find(|canvas| canvas.instance_id == gone.instance_id);
                canvas.into_iter().for_each(|canvas| canvas.url = None);
                self.revision += 1;
            }
            _ => {}
        }
    }

    /// Opens a canvas, or changes one that is open.
    pub(crate) fn open(&mut self, opened: CanvasOpened) {
        let canvas = Canvas::from(opened);
        self.revision += 1;
        match self.open.iter_mut().find(|known| known.instance_id == canvas.instance_id) {
            Some(known) => *known = canvas,
            None => {
                self.open.push(canvas);
                let excess = self.open.len().saturating_sub(MOST);
                self.open.drain(..excess);
            }
        }
    }

    pub(crate) fn list(&self) -> &[Canvas] {
        &self.open
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

#[cfg(test)]
mod tests {
    use hangar_protocol::data::{CanvasClosed, CanvasUnavailable};

    use super::*;

    fn opened(instance: &str, url: &str) -> CanvasOpened {
        CanvasOpened {
            instance_id: instance.to_owned(),
            extension_id: "project:board".to_owned(),
            extension_name: Some("board".to_owned()),
            canvas_id: "board".to_owned(),
            icon: None,
            title: Some("Board".to_owned()),
            status: None,
            url: Some(url.to_owned()),
            input: None,
        }
    }

    fn ids() -> (String, String) {
        ("project:board".to_owned(), "board".to_owned())
    }

    #[test]
    fn canvases_are_listed_from_their_opening_to_their_end() {
        let mut canvases = OpenCanvases::default();
        canvases.apply(&opened("1", "http://127.0.0.1:1/").into());
        canvases.apply(&opened("1", "http://127.0.0.1:2/").into());
        canvases.apply(&opened("2", "http://127.0.0.1:3/").into());
        let urls = |canvases: &OpenCanvases| -> Vec<Option<String>> {
            canvases.list().iter().map(|canvas| canvas.url.clone()).collect()
        };
        let url = |port: u8| Some(format!("http://127.0.0.1:{port}/"));
        assert_eq!(urls(&canvases), [url(2), url(3)]);
        let (extension_id, canvas_id) = ids();
        let gone = CanvasUnavailable { instance_id: "1".to_owned(), extension_id, canvas_id };
        canvases.apply(&gone.into());
        assert_eq!(urls(&canvases), [None, url(3)]);
        let (extension_id, canvas_id) = ids();
        let closed = CanvasClosed { instance_id: "1".to_owned(), extension_id, canvas_id };
        canvases.apply(&closed.into());
        assert_eq!(urls(&canvases), [url(3)]);
        assert_eq!(canvases.revision(), 5);
    }

    #[test]
    fn the_oldest_canvas_makes_room() {
        let mut canvases = OpenCanvases::default();
        for number in 0..=MOST {
            canvases.apply(&opened(&number.to_string(), "http://127.0.0.1:1/").into());
        }
        assert_eq!((canvases.list().len(), canvases.list()[0].instance_id.as_str()), (MOST, "1"));
    }
}
