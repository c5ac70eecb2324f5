//! Checkpoints: summaries as files, for people and for a model that wants to look something up.

/// A checkpoint to be written to the session's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub number: u64,
    pub title: String,
    pub content: String,
}

/// Characters of a title in the file's name.
const NAME_LENGTH: usize = 60;
const OPEN: &str = "<checkpoint_title>";
const CLOSE: &str = "</checkpoint_title>";

impl Checkpoint {
    /// Extracts the title of a summary.
    pub(super) fn new(number: u64, summary: &str) -> Self {
        let named = summary.split_once(OPEN).and_then(|(before, rest)| {
            let (title, after) = rest.split_once(CLOSE)?;
            Some((title.trim(), format!("{}{}", before.trim_end(), after.trim_end())))
        });
        match named {
            Some((title, content)) if !title.is_empty() => {
                let title = title.lines().next().unwrap_or_default().replace('|', "/");
                Self { number, title, content }
            }
            _ => Self { number, title: format!("Checkpoint {number}"), content: summary.to_owned() },
        }
    }

    /// `001-what-it-is-about.md`
    pub fn file_name(&self) -> String {
        let mut name = String::new();
        for letter in self.title.chars().take(NAME_LENGTH) {
            if letter.is_alphanumeric() {
                name.extend(letter.to_lowercase());
            } else if !name.ends_with('-') && !name.is_empty() {
                name.push('-');
            }
        }
        let name = name.trim_end_matches('-');
        let name = if name.is_empty() { "checkpoint" } else { name };
        format!("{:03}-{name}.md", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(summary: &str, title: &str, file: &str, content: &str) {
        let checkpoint = Checkpoint::new(7, summary);
        assert_eq!((checkpoint.title.as_str(), checkpoint.content.as_str()), (title, content));
        assert_eq!(checkpoint.file_name(), file);
    }

    #[test]
    fn a_checkpoint_is_named_after_the_title_in_its_summary() {
        check(
            "<overview>o</overview>\n<checkpoint_title>My First: Title!</checkpoint_title>\n",
            "My First: Title!",
            "007-my-first-title.md",
            "<overview>o</overview>",
        );
    }

    #[test]
    fn a_summary_without_a_title_has_a_number() {
        check("text", "Checkpoint 7", "007-checkpoint-7.md", "text");
        check(
            "<checkpoint_title> </checkpoint_title>x",
            "Checkpoint 7",
            "007-checkpoint-7.md",
            "<checkpoint_title> </checkpoint_title>x",
        );
    }

    #[test]
    fn a_title_cannot_lead_out_of_the_folder() {
        check(
            "<checkpoint_title>../../etc/passwd</checkpoint_title>",
            "../../etc/passwd",
            "007-etc-passwd.md",
            "",
        );
    }
}
