//! The table of the dashboard's files. A test compares it with the folder `web/`.

use super::WebFile;

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(WebFile {
            path: $path,
            bytes: include_bytes!(concat!("../../../../../web/", $path)),
        }),*]
    };
}

/// Every file, by its path from `web/`.
pub(super) static FILES: &[WebFile] = embedded![
    "controller.js",
    "data/answers.js",
    "data/fold.js",
    "data/live.js",
    "data/sse.js",
    "data/store.js",
    "data/types.js",
    "demo/recording.json",
    "demo/snapshot.js",
    "demo/source.js",
    "demo/timeline.js",
    "demo/transitions.js",
    "icon.svg",
    "index.html",
    "lib/cli.js",
    "lib/format.js",
    "lib/hash.js",
    "lib/html.js",
    "lib/schedule.js",
    "lib/theme.js",
    "lib/words.js",
    "main.js",
    "style/drawer.css",
    "style/page.css",
    "style/panels.css",
    "style/timeline.css",
    "style/tokens.css",
    "vendor/htm.LICENSE",
    "vendor/htm.mjs",
    "vendor/preact.LICENSE",
    "vendor/preact.mjs",
    "view/actions.js",
    "view/app.js",
    "view/backend_story.js",
    "view/backends.js",
    "view/decision_story.js",
    "view/demo_bar.js",
    "view/dialogs.js",
    "view/drawer.js",
    "view/failovers.js",
    "view/header.js",
    "view/lane.js",
    "view/lists.js",
    "view/parts.js",
    "view/route_story.js",
    "view/routes.js",
    "view/timeline.js",
    "view/verdict.js",
];
