//! A sentence model from a file, for `mcp.search.model`.
//!
//! - `queue`: where texts wait for the model's thread, within bounds.
//! - `work`: that thread: it loads the model, answers searches, and encodes tools in between.
//! - `kept`: vectors of texts, in memory and in a file beside the model.
//!
//! Rules kept here:
//! - Nothing of it runs on the MCP thread. A search waits [`READ_WITHIN`] at most for its own text;
//!   whatever is missing then makes it degraded, never an error.
//! - Nobody waits for tools: until all are encoded, which takes seconds to minutes, a search is
//!   degraded at once.
//! - The thread belongs to whoever holds a [`SentenceModel`], and ends with it.
//! - Tools are compared only when all of a version are encoded: a part of them would be found in
//!   place of the others.

mod kept;
mod queue;
mod work;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::{gateway::Gateway, live::Live};
use tidegate_runtime::clock::timer_now;
use tidegate_search::{Index, Sentences};
use tidegate_sentence::Encoder;
use tokio::sync::watch;
use tokio::time::timeout_at;

use self::{
    queue::{ModelQueue, ToolsFill},
    work::{Encode, Work},
};

/// How long a search may wait for the model: a request takes it 10 ms, and a tool before it as
/// long.
const READ_WITHIN: Duration = Duration::from_millis(300);

/// How a model is at the moment, as metrics and the status say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelState {
    Loading,
    Encoding,
    Ready,
    Failed,
}

impl ModelState {
    const fn word(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Encoding => "encoding",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// The model that the config names, if it names one.
#[derive(Default)]
pub(super) struct SentenceModel {
    at_work: RefCell<Option<AtWork>>,
}

/// A model's thread, which ends when this is dropped.
struct AtWork {
    file: PathBuf,
    queue: Arc<ModelQueue>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The vectors of one version of the tools, as soon as there are any, and whose they are.
pub(super) struct ToolVectors {
    queue: Arc<ModelQueue>,
    known: watch::Receiver<Option<Arc<Sentences>>>,
}

/// A request as the model reads it, beside the tools.
pub(super) struct SentenceReading {
    pub(super) sentences: Arc<Sentences>,
    pub(super) request: Vec<f32>,
}

impl SentenceModel {
    /// Follows the config: loads the model it names, and leaves one that it names no more.
    pub(super) fn follow(&self, gateway: &Arc<Gateway>, live: &Live) {
        let wanted = model_file(live);
        let mut at_work = self.at_work.borrow_mut();
        if at_work.as_ref().map(|it| &it.file) == wanted.as_ref() {
            return;
        }
        *at_work = None;
        gateway.metrics.mcp_search_model(None);
        let Some(file) = wanted else { return };
        let queue = Arc::new(ModelQueue::default());
        let load = {
            let file = file.clone();
            move || Encoder::load(&file).map(|it| Box::new(it) as Box<dyn Encode>)
        };
        let tell = teller(gateway, &queue);
        tell(ModelState::Loading);
        if !(Work { queue: Arc::clone(&queue), file: file.clone(), tell }).start(load) {
            gateway.metrics.mcp_search_model(Some(ModelState::Failed.word()));
        }
        *at_work = Some(AtWork { file, queue });
    }

    /// Whether the config names a model.
    pub(super) fn is_wanted(&self) -> bool {
        self.at_work.borrow().is_some()
    }

    /// Has the tools of a version encoded, unless they are already, or are about to be.
    pub(super) fn prepare(&self, index: &Arc<Index>, vectors: &RefCell<Option<ToolVectors>>) {
        let at_work = self.at_work.borrow();
        let Some(AtWork { queue, .. }) = at_work.as_ref() else { return };
        let mut vectors = vectors.borrow_mut();
        let is_same = |it: &ToolVectors| {
            let is_known = it.known.borrow().is_some();
            Arc::ptr_eq(&it.queue, queue) && (is_known || it.known.has_changed().is_ok())
        };
        if vectors.as_ref().is_some_and(is_same) {
            return;
        }
        let (told, known) = watch::channel(None);
        let fill = ToolsFill { index: Arc::clone(index), told };
        // A full queue is asked again by the next search.
        if queue.put_tools(fill) {
            *vectors = Some(ToolVectors { queue: Arc::clone(queue), known });
        }
    }

    /// A request as the model reads it; nothing if that takes too long or cannot be, and nothing at
    /// once while the tools are still being encoded.
    pub(super) async fn read(
        &self,
        (index, vectors): (&Arc<Index>, &RefCell<Option<ToolVectors>>),
        text: &str,
    ) -> Option<SentenceReading> {
        let until = timer_now() + READ_WITHIN;
        self.prepare(index, vectors);
        let (sentences, request) = {
            let vectors = vectors.borrow();
            let vectors = vectors.as_ref()?;
            let sentences = vectors.known.borrow().clone()?;
            (sentences, vectors.queue.put_request(text)?)
        };
        let request = timeout_at(until, request).await.ok()?.ok()??;
        Some(SentenceReading { sentences, request })
    }
}

/// Tells the metrics how a model is, for as long as it is wanted.
fn teller(gateway: &Arc<Gateway>, queue: &Arc<ModelQueue>) -> Box<dyn Fn(ModelState) + Send> {
    let (gateway, queue) = (Arc::clone(gateway), Arc::clone(queue));
    Box::new(move |state| {
        if !queue.is_closed() {
            gateway.metrics.mcp_search_model(Some(state.word()));
        }
    })
}

/// Where the model is that a config names.
fn model_file(live: &Live) -> Option<PathBuf> {
    Some(live.folder.join(live.file.mcp.search.model_file()?))
}

#[cfg(test)]
mod tests {
    use tidegate_search::Document;

    use super::{queue::Next, *};

    /// A model whose thread is the test: it works when the test takes something from the queue.
    fn idle() -> (SentenceModel, Arc<ModelQueue>) {
        let queue = Arc::new(ModelQueue::default());
        let at_work = AtWork { file: PathBuf::from("model.onnx"), queue: Arc::clone(&queue) };
        (SentenceModel { at_work: RefCell::new(Some(at_work)) }, queue)
    }

    fn one_tool() -> Arc<Index> {
        Arc::new(Index::build(vec![Document::plain("s", "alpha", "Converts a picture", [])]))
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_while_tools_are_encoded() {
        let (model, queue) = idle();
        let (index, vectors) = (one_tool(), RefCell::default());
        let began = timer_now();
        assert!(model.read((&index, &vectors), "convert").await.is_none());
        let Next::Tools(fill) = queue.next(false) else { panic!("the tools are in the queue") };
        assert!(model.read((&index, &vectors), "convert").await.is_none());
        assert_eq!(timer_now(), began, "no time passed");
        assert!(matches!(queue.next(true), Next::Continue), "no request and no second fill waits");
        // As soon as they are, the model is asked, and only that takes time.
        let known = index.sentences(1, &[Some(vec![1.0])], &[Some(vec![1.0])]);
        fill.told.send_replace(Some(Arc::new(known)));
        let answer = async {
            let Next::Request(asked) = queue.next(true) else {
                panic!("a request is in the queue")
            };
            asked.told.send(Some(vec![0.5])).expect("the search waits");
        };
        let (read, ()) = tokio::join!(model.read((&index, &vectors), "convert"), answer);
        assert_eq!(read.expect("the model read it").request, [0.5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_not_read_in_time_is_done_without() {
        let (model, queue) = idle();
        let (index, vectors) = (one_tool(), RefCell::default());
        model.prepare(&index, &vectors);
        let Next::Tools(fill) = queue.next(false) else { panic!("the tools are in the queue") };
        fill.told.send_replace(Some(Arc::default()));
        let began = timer_now();
        assert!(model.read((&index, &vectors), "convert").await.is_none());
        assert_eq!(timer_now().duration_since(began), READ_WITHIN);
    }
}
