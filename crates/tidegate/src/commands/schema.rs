//! `tidegate schema`: the JSON Schema of the config file, for editors and validators.

use clap::Args;

use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate schema > tidegate.schema.json

Then, as the first line of tidegate.yaml, most editors read:
  # yaml-language-server: $schema=tidegate.schema.json";

/// What may a config file hold? (JSON Schema)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Print one JSON document, which is what happens anyway
    #[arg(long)]
    json: bool,
}

/// Prints the schema.
pub(crate) fn run(_args: &SchemaArgs, printer: &Printer) -> Exit {
    printer.result(&tidegate_config::schema::json_schema_text());
    Exit::Done
}
