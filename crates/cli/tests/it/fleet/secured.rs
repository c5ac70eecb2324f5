//! TLS, client certificates and accounts, with real servers and certificates that are made here.

use std::path::{Path, PathBuf};
use std::process::Command;

use hangar_test_support::{ModelServer, NatsServers, NatsVersion, Scratch};

use crate::hangar;

fn openssl(directory: &Path, args: &[&str]) {
    let output = Command::new("openssl").args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and certificates for a server and for a client.
fn certificates(directory: &Path) {
    let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let authority = ["-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
    openssl(directory, &[&new[..], &authority[..]].concat());
    std::fs::write(
        directory.join("server.ext"),
        "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n",
    )
    .unwrap();
    std::fs::write(directory.join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    for name in ["server", "client"] {
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let subject = format!("/CN={name}");
        openssl(directory, &[&new[..], &["-subj", &subject, "-keyout", &key, "-out", &request]].concat());
        let (pem, ext) = (format!("{name}.pem"), format!("{name}.ext"));
        let sign = ["x509", "-req", "-days", "2", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        openssl(directory, &[&sign[..], &["-in", &request, "-out", &pem, "-extfile", &ext]].concat());
    }
}

struct Secured {
    scratch: Scratch,
    model: ModelServer,
    directory: PathBuf,
}

impl Secured {
    /// `hangar workers` with a table of the configuration.
    fn workers(&self, table: &str) -> hangar_test_support::Finished {
        std::fs::create_dir_all(self.scratch.state()).unwrap();
        let table = table.replace("DIR", &self.directory.display().to_string());
        std::fs::write(self.scratch.state().join("config.toml"), format!("[fleet]\n{table}\n")).unwrap();
        hangar(&self.scratch, &self.model).args(["workers"]).finish()
    }

    #[track_caller]
    fn refused(&self, table: &str, why: &str) {
        let done = self.workers(table).expect_exit(1);
        assert!(done.stderr.contains(why), "{done:#?}");
        assert!(!done.stderr.contains("correct-horse"), "no password in an error: {done:#?}");
    }
}

#[test]
fn certificates_users_and_accounts_are_checked() {
    let scratch = Scratch::new();
    let directory = scratch.root().join("tls");
    std::fs::create_dir_all(&directory).unwrap();
    certificates(&directory);
    let at = directory.display();
    let more = format!(
        r#"
jetstream {{ store_dir: "{at}/store" }}
tls {{ cert_file: "{at}/server.pem", key_file: "{at}/server.key", ca_file: "{at}/ca.pem", verify: true }}
accounts {{
  HANGAR {{ jetstream: enabled, users: [ {{ user: hangar, password: correct-horse }} ] }}
  OTHER {{ users: [ {{ user: other, password: correct-horse }} ] }}
}}
"#
    );
    let servers = NatsServers::start(NatsVersion::Current, 1, &more);
    let port = servers.port(0);
    let secured = Secured { scratch, model: ModelServer::start(), directory };
    let url = |user: &str| format!("url = \"tls://{user}@127.0.0.1:{port}\"\n");
    let tls = "tls = { ca = \"DIR/ca.pem\", cert = \"DIR/client.pem\", key = \"DIR/client.key\" }";
    let done = secured.workers(&format!("{}{tls}", url("hangar:correct-horse"))).expect_exit(0);
    assert!(done.stdout.contains("There is no worker"), "{done:#?}");
    secured.refused(&format!("{}{tls}", url("hangar:wrong-horse")), "refuses the credentials");
    secured.refused(&format!("{}{tls}", url("other:correct-horse")), "has no JetStream for this account");
    // Without the authority, and without a certificate of its own.
    secured.refused(&url("hangar:correct-horse"), "no NATS server answers at");
    let half = "tls = { ca = \"DIR/ca.pem\", cert = \"DIR/client.pem\" }";
    secured.refused(&format!("{}{half}", url("hangar:correct-horse")), "has only one of `cert` and `key`");
    let authority = "tls = { ca = \"DIR/ca.pem\" }";
    secured.refused(&format!("{}{authority}", url("hangar:correct-horse")), "no NATS server answers at");
    let missing = "tls = { ca = \"DIR/gone.pem\" }";
    secured
        .refused(&format!("{}{missing}", url("hangar:correct-horse")), "gone.pem of [fleet] cannot be used");
}
