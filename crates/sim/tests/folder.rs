//! Scenario files of somebody else: every file of the folder that `TIDEGATE_SCENARIOS` names has
//! to load without an error and to hold its expectations. Without the variable there is nothing
//! to do.

use std::{env, fs, path::Path};

use tidegate_config::{diagnostic::Diagnostic, source::read_file};
use tidegate_sim::scenario::load;

#[test]
fn every_scenario_of_the_named_folder_passes() {
    let Some(folder) = env::var_os("TIDEGATE_SCENARIOS") else { return };
    let entries = fs::read_dir(Path::new(&folder)).expect("TIDEGATE_SCENARIOS names a folder");
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    assert!(!paths.is_empty(), "no .yaml file in {}", folder.display());
    for path in paths {
        let source = read_file(&path).expect("a file of the folder can be read");
        let (scenario, problems) = load(&source);
        assert!(!problems.iter().any(Diagnostic::is_error), "{}: {problems:?}", path.display());
        let report = scenario.expect("a file without an error is a scenario").run(0);
        assert_eq!(report.failures(), [], "{}", report.replay());
    }
}
