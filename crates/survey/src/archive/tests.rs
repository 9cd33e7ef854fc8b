//! Archives that mean no good, built here: nothing of them is written outside, and nothing is left. HARDENING A04 … A08

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

use super::{Format, Unpacked, unpack};

/// A member of an archive, without any check.
struct Member<'a> {
    name: &'a [u8],
    kind: u8,
    mode: u32,
    link: &'a str,
    content: Vec<u8>,
}

fn file(name: &str, content: &str) -> Member<'static> {
    let name = Box::leak(name.as_bytes().to_vec().into_boxed_slice());
    Member { name, kind: b'0', mode: 0o644, link: "", content: content.into() }
}

fn of_kind(name: &'static str, kind: u8, link: &'static str) -> Member<'static> {
    Member { name: name.as_bytes(), kind, mode: 0o644, link, content: Vec::new() }
}

fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A tape archive as a stranger may write it.
fn tar_gz(members: &[Member]) -> Vec<u8> {
    gzip(&tape(members), Compression::fast())
}

fn tape(members: &[Member]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in members {
        let mut header = [0u8; 512];
        header[..member.name.len().min(100)]
            .copy_from_slice(&member.name[..member.name.len().min(100)]);
        header[100..108].copy_from_slice(format!("{:07o}\0", member.mode).as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", member.content.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[156] = member.kind;
        header[157..157 + member.link.len()].copy_from_slice(member.link.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(&member.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    bytes
}

fn zipped(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, mode, content) in members {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Every path in and beside the folder, so that nothing escapes notice.
fn everything(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            found.push(path.strip_prefix(root).unwrap().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn refused(archive: &[u8], format: Format, expected: &str) {
    let around = TempDir::new().unwrap();
    fs::create_dir(around.path().join("deep")).unwrap();
    let into = around.path().join("deep/into");
    let error = unpack(archive, format, &into).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(everything(around.path()), ["deep"], "something was left");
}

#[test]
fn good_archives_are_unpacked_without_their_modes() {
    let around = TempDir::new().unwrap();
    let into = around.path().join("tar");
    let mut program = file("package/bin/run", "#!/bin/sh\n");
    program.mode = 0o755;
    let archive = tar_gz(&[
        of_kind("package/", b'5', ""),
        file("package/package.json", "{}"),
        program,
        of_kind("package/latest", b'2', "bin/run"),
    ]);
    let unpacked = unpack(&archive, Format::TarGz, &into).unwrap();
    assert_eq!(unpacked, Unpacked { files: 2, bytes: 12, links_left_out: 1 });
    assert_eq!(
        everything(&into),
        ["package", "package/bin", "package/bin/run", "package/package.json"]
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(into.join("package/bin/run")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o7777, 0o600);
    let into = around.path().join("zip");
    let archive = zipped(&[("a/b.py", 0o755, b"x = 1\n"), ("c.txt", 0o644, b"c")]);
    assert_eq!(unpack(&archive, Format::Zip, &into).unwrap().files, 2);
    assert_eq!(everything(&into), ["a", "a/b.py", "c.txt"]);
}

#[test]
fn long_names_are_read() {
    let long = format!("{}/x.py", "d".repeat(120));
    let mut name = of_kind("././@LongLink", b'L', "");
    name.content = format!("{long}\0").into_bytes();
    let record = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let mut length = body.len() + 2;
        length = body.len() + length.to_string().len();
        format!("{length}{body}")
    };
    let mut extended = of_kind("PaxHeader", b'x', "");
    extended.content = record("path", &format!("{}/y.py", "e".repeat(120))).into_bytes();
    let archive = tar_gz(&[name, file("cut", "1"), extended, file("cut", "2")]);
    let around = TempDir::new().unwrap();
    let into = around.path().join("into");
    unpack(&archive, Format::TarGz, &into).unwrap();
    assert_eq!(fs::read_to_string(into.join(long)).unwrap(), "1");
    assert_eq!(fs::read_to_string(into.join(format!("{}/y.py", "e".repeat(120)))).unwrap(), "2");
    let mut escaping = of_kind("PaxHeader", b'x', "");
    escaping.content = record("path", "../../escaped").into_bytes();
    refused(&tar_gz(&[escaping, file("a", "1")]), Format::TarGz, "leads out of the folder");
    let mut resized = of_kind("PaxHeader", b'x', "");
    resized.content = record("size", "9").into_bytes();
    refused(&tar_gz(&[resized, file("a", "1")]), Format::TarGz, "a size that stands outside");
}

/// Fifteen hostile tape archives, each refused for what it is.
#[test]
fn hostile_tape_archives_are_refused_and_leave_nothing() {
    let mut endless = of_kind("././@LongLink", b'L', "");
    endless.content = vec![b'a'; 100_000];
    let mut rights = file("run", "x");
    rights.mode = 0o4755;
    let mut group = file("run", "x");
    group.mode = 0o2755;
    let invalid = Member { name: b"a\xff", kind: b'0', mode: 0o644, link: "", content: Vec::new() };
    let hostile: Vec<(Vec<Member>, &str)> = vec![
        (
            vec![file("ok", "1"), file("../escaped", "2")],
            "member `../escaped` leads out of the folder by `..`",
        ),
        (vec![file("a/../../escaped", "2")], "leads out of the folder by `..`"),
        (vec![file("/tmp/escaped", "2")], "is absolute"),
        (vec![file("..\\escaped", "2")], "holds a backslash"),
        (vec![file("C:escaped", "2")], "names a drive"),
        (vec![of_kind("link", b'2', "/etc/passwd")], "is a link that leads out of the archive"),
        (
            vec![of_kind("a/link", b'2', "../../x"), file("a/link/y", "2")],
            "is a link that leads out of the archive",
        ),
        (
            vec![of_kind("hard", b'1', "../../etc/passwd")],
            "is a link that leads out of the archive",
        ),
        (vec![of_kind("pipe", b'6', "")], "is a device or a pipe"),
        (vec![of_kind("null", b'3', ""), file("b", "2")], "is a device or a pipe"),
        (vec![rights], "would run with the rights of its owner"),
        (vec![group], "would run with the rights of its owner"),
        (vec![file("a", "1"), file("a", "2")], "is there twice"),
        (vec![file("a", "1"), file("a/b", "2")], "is there twice"),
        (vec![endless, file("a", "1")], "a name of it is too long"),
        (vec![invalid], "is no UTF-8"),
        (vec![of_kind("sparse", b'S', "")], "is of an unknown kind"),
        (vec![file("a\u{1b}[8m", "1")], "holds a control character"),
    ];
    assert!(hostile.len() >= 15);
    for (members, expected) in hostile {
        refused(&tar_gz(&members), Format::TarGz, expected);
    }
}

#[test]
fn hostile_zips_are_refused_and_leave_nothing() {
    refused(
        &zipped(&[("ok", 0o644, b"1"), ("../escaped", 0o644, b"2")]),
        Format::Zip,
        "leads out of the folder",
    );
    refused(&zipped(&[("/tmp/escaped", 0o644, b"2")]), Format::Zip, "is absolute");
    refused(&zipped(&[("a\\b", 0o644, b"2")]), Format::Zip, "holds a backslash");
    refused(&zipped(&[("a/b", 0o644, b"2"), ("a", 0o644, b"2")]), Format::Zip, "is there twice");
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.add_symlink("link", "../../etc/passwd", SimpleFileOptions::default()).unwrap();
    let linked = writer.finish().unwrap().into_inner();
    refused(&linked, Format::Zip, "is a link that leads out of the archive");
    refused(b"PK\x03\x04 no zip", Format::Zip, "can't be read");
}

#[test]
fn bombs_are_stopped_and_cleaned_up() {
    let zeros = vec![0; 30 << 20];
    let mut bomb = file("bomb", "");
    bomb.content = zeros.clone();
    refused(&tar_gz(&[bomb]), Format::TarGz, "grows more than 100 times");
    refused(&zipped(&[("bomb", 0o644, &zeros)]), Format::Zip, "grows more than 100 times");
    let many: Vec<Member> = (0..20_001).map(|number| file(&format!("f{number}"), "")).collect();
    refused(&tar_gz(&many), Format::TarGz, "holds over 20000 files");
    // Packed without loss of bytes, so that only the size tells.
    let block = vec![7; 8 << 20];
    let large: Vec<Member> = (0..26)
        .map(|number| {
            let mut one = file(&format!("f{number}"), "");
            one.content.clone_from(&block);
            one
        })
        .collect();
    refused(
        &gzip(&tape(&large), Compression::none()),
        Format::TarGz,
        "becomes over 209715200 bytes",
    );
}

#[test]
fn broken_archives_are_refused_and_leave_nothing() {
    let good = tar_gz(&[file("a", "hello"), file("b", &"x".repeat(5000))]);
    for cut in [0, 1, 10, good.len() / 2] {
        refused(&good[..cut], Format::TarGz, "can't be read");
    }
    refused(b"no archive at all", Format::TarGz, "can't be read");
    refused(&gzip(&[], Compression::fast()), Format::TarGz, "it is empty");
}

#[test]
fn format_is_told_by_the_name() {
    assert_eq!(Format::of("x-1.0.tar.gz").unwrap(), Format::TarGz);
    assert_eq!(Format::of("x-1.0-py3-none-any.whl").unwrap(), Format::Zip);
    let error = Format::of("x.tar.bz2").unwrap_err().to_string();
    assert!(error.starts_with("`x.tar.bz2` is no archive that can be unpacked"), "{error}");
}

#[test]
fn members_of_a_zip_are_counted_before_any_is_read() {
    // HARDENING A06: what is said of them could not even be read.
    let archive = b"PK\x01\x02 and nothing else".repeat(20_001);
    refused(&archive, Format::Zip, "the archive holds over 20000 files");
    refused(&archive[..archive.len() / 2], Format::Zip, "the archive can't be read");
}
