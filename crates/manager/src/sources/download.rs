//! Packages of npm and of the Python index: downloaded, compared with what their registry says of them, unpacked by `survey`.

use aws_lc_rs::digest::{Algorithm, SHA256, SHA512, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp::text::{hexadecimal, shorten};
use serde_json::Value;
use survey::archive::{Format, unpack};
use upstream::fetch::{Wanted, fetch};
use upstream::remote::Url;

use super::registry::{beneath, encode, json_at};
use super::{Fetched, fresh, keep};
use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{DOWNLOAD_TIME_MAX, PACKAGE_BYTES_MAX};

/// The host of files of the public index of Python packages, which is not that of the index.
const PYPI_FILES: &str = "files.pythonhosted.org";

/// Where packages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Npm,
    Pypi,
}

/// An archive of a package, and what its bytes must be.
#[derive(Debug)]
struct Archive {
    url: Url,
    name: String,
    version: String,
    algorithm: &'static Algorithm,
    digest: Vec<u8>,
}

/// A package by its name, and by its version or the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub kind: Kind,
    pub name: String,
    pub version: Option<String>,
}

impl Wish {
    /// Checks the names, which become part of an address.
    pub fn new(kind: Kind, name: &str, version: Option<&str>) -> Result<Wish, Error> {
        let is_plain = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+~!".contains(c);
            !text.is_empty()
                && text.len() <= 200
                && text.chars().all(allowed)
                && !text.starts_with(['.', '-'])
        };
        let is_name = match (kind, name.strip_prefix('@')) {
            (Kind::Npm, Some(scoped)) => scoped
                .split_once('/')
                .is_some_and(|(scope, name)| is_plain(scope) && is_plain(name)),
            _ => is_plain(name),
        };
        if !is_name || !version.is_none_or(is_plain) {
            return Err(Error::Source(format!("`{}` is no name of a package", shorten(name))));
        }
        Ok(Wish { kind, name: name.to_owned(), version: version.map(str::to_owned) })
    }

    /// What the sources are kept under.
    pub fn origin(&self) -> String {
        let kind = match self.kind {
            Kind::Npm => "npm",
            Kind::Pypi => "pypi",
        };
        let version =
            self.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
        format!("{kind}:{}{version}", self.name)
    }

    /// Downloads and unpacks the package. Nothing of it is run or installed.
    pub async fn fulfil(&self, desk: &Desk) -> Result<Fetched, Error> {
        let _one = desk.sources.fetching.lock().await;
        let archive = match self.kind {
            Kind::Npm => self.npm(&desk.sources.npm).await?,
            Kind::Pypi => self.pypi(&desk.sources.pypi).await?,
        };
        let format = Format::of(&archive.name).map_err(|error| Error::Source(error.to_string()))?;
        let wanted =
            Wanted { accept: "*/*", bytes_max: PACKAGE_BYTES_MAX, time_max: DOWNLOAD_TIME_MAX };
        let bytes =
            fetch(&archive.url, wanted).await.map_err(|error| Error::Source(error.to_string()))?;
        if digest(archive.algorithm, &bytes).as_ref() != archive.digest {
            return Err(Error::Source(format!(
                "`{}` is not what its registry says it is: the hash of its bytes differs; nothing was unpacked",
                archive.name
            )));
        }
        let (name, place) = fresh(desk, &self.origin())?;
        // From here on it does not wait, so that it is put into its place whole or not at all.
        if let Err(error) = unpack(&bytes, format, &place.join("source")) {
            _ = desk.data.remove_folder(&name);
            return Err(Error::Source(error.to_string()));
        }
        let fetched = Fetched {
            origin: self.origin(),
            version: archive.version,
            time: (desk.clock)(),
            notes: Vec::new(),
        };
        keep(desk, &name, &fetched)?;
        Ok(fetched)
    }

    async fn npm(&self, base: &Url) -> Result<Archive, Error> {
        let version = self.version.as_deref().unwrap_or("latest");
        let path = format!("{}/{}", encode(&self.name).replace("%40", "@"), encode(version));
        let about = json_at(&beneath(base, &path)?).await?;
        let integrity = about["dist"]["integrity"].as_str().unwrap_or_default();
        let hashes = integrity.split_whitespace().find_map(|one| one.strip_prefix("sha512-"));
        let digest = hashes.and_then(|text| STANDARD.decode(text).ok());
        let digest = digest.ok_or_else(|| self.lacks("a sha512 of its archive"))?;
        let text = about["dist"]["tarball"].as_str().ok_or_else(|| self.lacks("an archive"))?;
        let url = self.archive_at(text, base)?;
        Ok(Archive {
            name: "package.tgz".to_owned(),
            url,
            version: about["version"].as_str().unwrap_or_default().to_owned(),
            algorithm: &SHA512,
            digest,
        })
    }

    async fn pypi(&self, base: &Url) -> Result<Archive, Error> {
        let version = self
            .version
            .as_ref()
            .map(|version| format!("/{}", encode(version)))
            .unwrap_or_default();
        let about =
            json_at(&beneath(base, &format!("pypi/{}{version}/json", encode(&self.name)))?).await?;
        let files = about["urls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_format =
            |file: &&Value| file["filename"].as_str().is_some_and(|name| Format::of(name).is_ok());
        let of =
            |kind: &str| files.iter().filter(is_format).find(|file| file["packagetype"] == kind);
        // What was written tells more than what was built.
        let file = of("sdist")
            .or_else(|| of("bdist_wheel"))
            .ok_or_else(|| self.lacks("an archive of sources"))?;
        let sha256 = file["digests"]["sha256"].as_str().and_then(bytes_of);
        Ok(Archive {
            url: self.archive_at(file["url"].as_str().unwrap_or_default(), base)?,
            name: file["filename"].as_str().unwrap_or_default().to_owned(),
            version: about["info"]["version"].as_str().unwrap_or_default().to_owned(),
            algorithm: &SHA256,
            digest: sha256.ok_or_else(|| self.lacks("a sha256 of its archive"))?,
        })
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Source(format!("the registry names no package `{}` with {what}", self.origin()))
    }

    /// The address of an archive, if it is on the host that was asked: registry data leads nowhere else.
    fn archive_at(&self, text: &str, base: &Url) -> Result<Url, Error> {
        let url: Url = text.parse().map_err(|_| self.lacks("an address of its archive"))?;
        let host = |url: &Url| url.uri().host().map(str::to_lowercase);
        let is_same = host(&url) == host(base)
            && url.uri().port_u16() == base.uri().port_u16()
            && url.is_https() == base.is_https();
        let is_public_index = host(base).as_deref() == Some("pypi.org")
            && host(&url).as_deref() == Some(PYPI_FILES)
            && url.is_https();
        if is_same || is_public_index {
            return Ok(url);
        }
        let asked = base.uri().host().unwrap_or_default();
        Err(Error::Source(format!(
            "the archive of `{}` is not on {asked}, which was asked",
            self.origin()
        )))
    }
}

/// The bytes that hexadecimal digits mean.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let pairs =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.filter(|bytes| hexadecimal(bytes) == digits.to_lowercase())
}
