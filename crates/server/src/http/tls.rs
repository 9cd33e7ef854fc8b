//! TLS from a certificate and a key in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// What clients are shown, ready to be used.
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

/// Why a certificate and a key are of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("can't read the {what} `{}`: {error}", .path.display())]
    Unreadable { what: &'static str, path: PathBuf, error: std::io::Error },

    #[error("there is no {what} in `{}`; it must be PEM, with a line `-----BEGIN …`", .path.display())]
    Absent { what: &'static str, path: PathBuf },

    #[error("the {what} in `{}` is broken: {error}", .path.display())]
    Broken { what: &'static str, path: PathBuf, error: PemError },

    #[error("the key in `{}` does not belong to the certificate in `{}`", .key.display(), .certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },

    #[error("`{}` and `{}` can't be used for TLS: {error}", .certificate.display(), .key.display())]
    Unusable { certificate: PathBuf, key: PathBuf, error: rustls::Error },
}

impl Tls {
    /// Reads a chain of certificates and the key of the first.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let chain_text = read("certificate", certificate)?;
        let broken = |what, path: &Path, error| {
            let path = path.to_owned();
            match error {
                PemError::NoItemsFound => TlsError::Absent { what, path },
                error => TlsError::Broken { what, path, error },
            }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain_text).collect();
        let chain = chain
            .and_then(
                |chain| if chain.is_empty() { Err(PemError::NoItemsFound) } else { Ok(chain) },
            )
            .map_err(|error| broken("certificate", certificate, error))?;
        let private = PrivateKeyDer::from_pem_slice(&read("key", key)?)
            .map_err(|error| broken("key", key, error))?;
        let config = configure(chain, private).map_err(|error| {
            let (certificate, key) = (certificate.to_owned(), key.to_owned());
            match error {
                rustls::Error::InconsistentKeys(_) => TlsError::Mismatch { certificate, key },
                error => TlsError::Unusable { certificate, key, error },
            }
        })?;
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::Unreadable { what, path: path.to_owned(), error };
    std::fs::read(path).map_err(unreadable)
}

fn configure(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
