//! Endpoints of processes that run a job by themselves. They listen only once another process asks for views of their sessions: it
//! creates a request file, which the process looks for, and the process publishes its endpoint.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Announcement, MAX_LISTED, ProcessEndpoint, files, read};

/// How often a process looks for requests.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often the endpoint of a process is looked for, and how many times.
const POLL_EVERY: Duration = Duration::from_millis(50);
const POLLS: usize = 60;

/// A process that runs a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct JobProcess {
    pid: u32,
    /// Address at which it serves views of its sessions. `None` until one is requested.
    views: Option<ProcessEndpoint>,
}

fn jobs_dir(home: &Path) -> PathBuf {
    home.join("run/jobs")
}

fn request_file(home: &Path, pid: u32) -> PathBuf {
    jobs_dir(home).join(format!("{pid}.request"))
}

/// This process as one that runs a job. Dropping it removes its files.
pub(crate) struct JobPresence {
    home: PathBuf,
    announcement: Announcement,
}

impl JobPresence {
    pub(crate) fn announce(home: &Path) -> io::Result<Self> {
        let announcement = publish(home, None)?;
        let presence = Self { home: home.to_owned(), announcement };
        // A request to an earlier process with the same id.
        presence.remove_request();
        Ok(presence)
    }

    /// Waits until another process requests views.
    pub(crate) async fn requested(&self) {
        while !request_file(&self.home, std::process::id()).exists() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Publishes where views are served.
    pub(crate) fn serve(&mut self, endpoint: ProcessEndpoint) -> io::Result<()> {
        self.announcement = publish(&self.home, Some(endpoint))?;
        self.remove_request();
        Ok(())
    }

    fn remove_request(&self) {
        // Usually there is none.
        let _ = std::fs::remove_file(request_file(&self.home, std::process::id()));
    }
}

impl Drop for JobPresence {
    fn drop(&mut self) {
        self.remove_request();
    }
}

fn publish(home: &Path, views: Option<ProcessEndpoint>) -> io::Result<Announcement> {
    let pid = std::process::id();
    Announcement::publish(&jobs_dir(home), &format!("{pid}.json"), &JobProcess { pid, views })
}

fn jobs(home: &Path) -> Vec<JobProcess> {
    files(&jobs_dir(home)).filter_map(|file| read(&file)).take(MAX_LISTED).collect()
}

/// Endpoints of the processes that run a job, which are requested where there are none yet.
pub(crate) async fn job_views(home: &Path) -> Vec<ProcessEndpoint> {
    let waiting: Vec<u32> = jobs(home).iter().filter(|job| job.views.is_none()).map(|job| job.pid).collect();
    for &pid in &waiting {
        // A process that cannot be asked has no views.
        let _ = hangar_disk::keep(&request_file(home, pid), "");
    }
    for _ in 0..POLLS {
        if jobs(home).iter().all(|job| job.views.is_some()) {
            break;
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    for pid in waiting {
        let _ = std::fs::remove_file(request_file(home, pid));
    }
    jobs(home).into_iter().filter_map(|job| job.views).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_publishes_its_endpoint_once_it_is_requested() {
        let home = tempfile::tempdir().unwrap();
        let listed = || std::fs::read_dir(jobs_dir(home.path())).unwrap().count();
        assert_eq!(job_views(home.path()).await, []);
        let mut presence = JobPresence::announce(home.path()).unwrap();
        let endpoint =
            ProcessEndpoint { pid: std::process::id(), address: ([127, 0, 0, 1], 9).into(), token: None };
        let asked = tokio::spawn({
            let home = home.path().to_owned();
            async move { job_views(&home).await }
        });
        presence.requested().await;
        presence.serve(endpoint.clone()).unwrap();
        assert_eq!(asked.await.unwrap(), [endpoint]);
        assert_eq!(listed(), 1);
        drop(presence);
        assert_eq!(listed(), 0);
    }
}
