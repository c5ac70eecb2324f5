//! `cargo xtask up`: a first look without a key. Builds the program and has the scripted model mend a small bug.

use anyhow::{Context, Result};

use crate::shell::{program, run};

const BUG: &str = "def add(a, b):\n    return a - b\n";

/// What the scripted model says and does, in the marker language of `hangar model serve`.
const SCRIPT: &str = r#"
SAY:The sum is a difference; I fix the operator and check it.
PTOOL:edit:{"path":"calc.py","old_str":"a - b","new_str":"a + b"}
TOOL:grep:{"pattern":"return","output_mode":"content"}
TOOL:bash:{"command":"grep -n 'a + b' calc.py","description":"Look at the result"}
SAY:`add` subtracted. It adds now.
"#;

pub(crate) fn run_demo() -> Result<()> {
    run(program("cargo").args(["build", "--package", "hangar-cli"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), Into::into);
    let hangar = std::path::absolute(target.join("debug").join("hangar"))?;
    let demo = target.join("demo");
    std::fs::create_dir_all(&demo).with_context(|| format!("cannot make {}", demo.display()))?;
    std::fs::write(demo.join("calc.py"), BUG)?;
    std::fs::write(demo.join("fix.script"), SCRIPT)?;
    println!("\nIn {}, with the scripted model:\n", demo.display());
    println!("$ hangar --model scripted --allow-tool=write -p 'add() is wrong, fix it'");
    let mut command = program(&hangar.to_string_lossy());
    command
        .current_dir(&demo)
        .env("HANGAR_HOME", demo.join("home"))
        .env("HANGAR_SCRIPT", demo.join("fix.script"))
        .args(["--model", "scripted", "--allow-tool=write", "-p", "add() is wrong, fix it"]);
    run(&mut command)?;
    println!(
        "\nYour own model: set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL, then {} -p \"...\"",
        hangar.display()
    );
    println!("What is missing for that: {} doctor", hangar.display());
    Ok(())
}
