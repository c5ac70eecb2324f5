//! Runs that are resumed after their process ended.

use std::sync::Barrier;

use hangar_jobs::record::RunId;
use hangar_registry::error::RegistryError;
use hangar_registry::runs::RunState;

use crate::stage::Stage;

/// Callers at once. Rounds in which they meet.
const CALLERS: usize = 8;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_resume_a_run_one_does_and_can_stop_it() {
    let mut stage = Stage::new();
    for _ in 0..ROUNDS {
        let started =
            stage.runs.start_job("waits", String::new(), stage.workspace().to_owned(), None).unwrap();
        let run = RunId(started.run.id);
        stage = stage.again().await;
        let barrier = Barrier::new(CALLERS);
        let handle = tokio::runtime::Handle::current();
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..CALLERS)
                .map(|_| {
                    scope.spawn(|| {
                        let _runtime = handle.enter();
                        barrier.wait();
                        stage.runs.resume(&run)
                    })
                })
                .collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let (resumed, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(resumed.len(), 1);
        assert!(
            refused.iter().all(|outcome| matches!(outcome, Err(RegistryError::RunUnderWay(_)))),
            "{refused:?}"
        );
        stage.runs.stop(&run).await.unwrap();
        let mut following = stage.runs.follow(&run, None).unwrap();
        while stage.runs.details(&run).unwrap().run.state != RunState::Canceled {
            following.next().await.unwrap();
        }
    }
}
