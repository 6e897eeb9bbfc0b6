//! Serves the static files of a site.
//!
//! Only regular files are served, because opening a pipe or device could block a thread. Paths are
//! checked after decoding, when the file is opened, so that no encoding of a path can bypass the
//! check.

use std::future::{Future, Ready, ready};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::spawn_blocking;
use tower_http::services::ServeDir;
use tower_http::services::fs::{Backend, DefaultServeDirFallback, File, Metadata};

use crate::config::{Dotfiles, StaticFiles};
use crate::date;
use crate::files;

/// The only folder whose files are public although its name has a leading dot (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

pub(super) type ServeFiles = ServeDir<DefaultServeDirFallback, ServedFolder>;

#[derive(Clone, Debug)]
pub(crate) struct ServedFolder {
    /// The path begins with `./`, like the paths that `ServeDir` builds.
    base: PathBuf,
    dotfiles: Dotfiles,
}

#[derive(Debug)]
pub(crate) struct OpenFile {
    file: tokio::fs::File,
    metadata: std::fs::Metadata,
}

/// Metadata of a file. A modification time that HTTP cannot express is left out, because `ServeDir`
/// would panic.
#[derive(Debug)]
pub(crate) struct HttpMetadata(std::fs::Metadata);

pub(super) fn serve(files: &StaticFiles) -> ServeFiles {
    let folder = ServedFolder { base: Path::new(".").join(&files.root), dotfiles: files.dotfiles };
    ServeDir::with_backend(&files.root, folder)
}

impl ServedFolder {
    fn is_served(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.base) else { return false };
        self.dotfiles == Dotfiles::Serve || inside.components().enumerate().all(|(depth, part)| is_plain(part, depth))
    }
}

/// Reports whether a path with this component may be served. Components with a leading dot, such as
/// `.git` and `.htpasswd`, are hidden, except a top-level `.well-known`.
fn is_plain(part: Component<'_>, depth: usize) -> bool {
    let name = part.as_os_str();
    !name.as_encoded_bytes().starts_with(b".") || depth == 0 && name == WELL_KNOWN
}

fn not_found<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotFound.into())
}

/// Converts an error to "not found" if no regular file can have this path, for example because the
/// path is too long. Clients can send any path.
fn or_not_found(error: io::Error) -> io::Error {
    let is_nowhere = matches!(error.raw_os_error(), Some(libc::ENAMETOOLONG | libc::ELOOP));
    if is_nowhere || error.kind() == io::ErrorKind::InvalidInput { io::ErrorKind::NotFound.into() } else { error }
}

impl Backend for ServedFolder {
    type File = OpenFile;
    type Metadata = HttpMetadata;
    type OpenFuture = Pin<Box<dyn Future<Output = io::Result<OpenFile>> + Send>>;
    type MetadataFuture = Pin<Box<dyn Future<Output = io::Result<HttpMetadata>> + Send>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        if !self.is_served(&path) {
            return Box::pin(ready(not_found()));
        }
        Box::pin(async move {
            match spawn_blocking(move || files::open(&path)).await? {
                Ok((file, metadata)) => Ok(OpenFile { file: file.into(), metadata }),
                Err(error) => Err(or_not_found(error)),
            }
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        if !self.is_served(&path) {
            return Box::pin(ready(not_found()));
        }
        Box::pin(async move {
            let found = tokio::fs::metadata(path).await.map_err(or_not_found)?;
            if found.is_file() || found.is_dir() { Ok(HttpMetadata(found)) } else { not_found() }
        })
    }
}

impl Metadata for HttpMetadata {
    fn is_dir(&self) -> bool {
        self.0.is_dir()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        let modified = self.0.modified()?;
        if date::is_supported(modified) { Ok(modified) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl File for OpenFile {
    type Metadata = HttpMetadata;
    type MetadataFuture<'a> = Ready<io::Result<HttpMetadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(HttpMetadata(self.metadata.clone())))
    }
}

impl AsyncRead for OpenFile {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_read(cx, buffer)
    }
}

impl AsyncSeek for OpenFile {
    fn start_seek(mut self: Pin<&mut Self>, position: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.file).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.file).poll_complete(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use http::header::{ETAG, LAST_MODIFIED, LOCATION};
    use http::{HeaderMap, Method, Request};
    use http_body_util::{BodyExt, Empty};
    use tower::ServiceExt;

    use super::*;

    async fn answer(files: &ServeFiles, method: Method, target: &str) -> (u16, HeaderMap, String) {
        let request = Request::builder().method(method).uri(target).body(Empty::<bytes::Bytes>::new()).unwrap();
        let (head, body) = files.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8_lossy(&body).into_owned())
    }

    async fn status(files: &ServeFiles, target: &str) -> u16 {
        let (get, ..) = answer(files, Method::GET, target).await;
        let (head, ..) = answer(files, Method::HEAD, target).await;
        assert_eq!(get, head, "{target}");
        get
    }

    fn site(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn serving(root: &Path, dotfiles: Dotfiles) -> ServeFiles {
        serve(&StaticFiles { root: root.to_owned(), dotfiles })
    }

    #[tokio::test]
    async fn dotfiles_other_than_well_known_are_served_only_if_configured() {
        const HIDDEN: &[&str] = &[
            ".env",
            ".git/config",
            ".well-known-2/x",
            "docs/.htpasswd",
            "docs/.well-known/x",
            ".well-known/.git/config",
            "..more/x",
            ".../x",
        ];
        const SHOWN: &[&str] = &["index.html", "a.b/c.html", "x.", ".well-known/security.txt", "docs/index.html"];
        let folder = site(&[HIDDEN, SHOWN].concat());
        let usual = serving(folder.path(), Dotfiles::Hide);
        let all = serving(folder.path(), Dotfiles::Serve);
        for path in SHOWN {
            assert_eq!(status(&usual, &format!("/{path}")).await, 200, "{path}");
        }
        for path in HIDDEN {
            let escaped = path.replace('.', "%2e");
            let wholly: String = path.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let target = |path: &str| [format!("/{path}"), format!("//{path}"), format!("/./{path}?a=/index.html")];
            for target in target(path).into_iter().chain(target(&escaped)).chain(target(&wholly)) {
                assert_eq!(status(&usual, &target).await, 404, "{target}");
                assert_eq!(status(&all, &target).await, 200, "{target}");
            }
        }
        // The response must not reveal that the folder exists.
        let (status, head, _) = answer(&usual, Method::GET, "/.git").await;
        assert_eq!((status, head.get(LOCATION)), (404, None));
        assert_eq!(answer(&all, Method::GET, "/.git").await.0, 307);
    }

    #[tokio::test]
    async fn the_root_may_be_inside_a_folder_whose_name_begins_with_a_dot() {
        let folder = site(&[".site/public/index.html", ".site/public/.env"]);
        let files = serving(&folder.path().join(".site/./public"), Dotfiles::Hide);
        assert_eq!(status(&files, "/").await, 200);
        assert_eq!(status(&files, "/.env").await, 404);
    }

    #[tokio::test]
    async fn a_modification_date_that_http_cannot_express_is_omitted() {
        let folder = site(&["file"]);
        let files = serving(folder.path(), Dotfiles::Hide);
        let file = fs::File::options().write(true).open(folder.path().join("file")).unwrap();
        let (second, last) = (Duration::from_secs(1), Duration::from_secs(253_402_300_799));
        for (time, is_date) in [
            (UNIX_EPOCH - second, false),
            (UNIX_EPOCH - Duration::from_nanos(1), false),
            (UNIX_EPOCH - 100_000_000 * second, false),
            (UNIX_EPOCH, true),
            (UNIX_EPOCH + 1_700_000_000 * second, true),
            (UNIX_EPOCH + last, true),
            (UNIX_EPOCH + last + second, false),
        ] {
            // Some file systems cannot store every date.
            if file.set_modified(time).is_err() || file.metadata().unwrap().modified().unwrap() != time {
                continue;
            }
            for method in [Method::GET, Method::HEAD] {
                let (status, head, _) = answer(&files, method, "/file").await;
                assert_eq!(status, 200, "{time:?}");
                assert_eq!((head.contains_key(LAST_MODIFIED), head.contains_key(ETAG)), (is_date, is_date), "{time:?}");
            }
        }
    }

    #[tokio::test]
    async fn symbolic_links_are_followed_even_outside_the_root() {
        use std::os::unix::fs::symlink;
        let folder = site(&["outside/page", "root/.hidden/page"]);
        let root = folder.path().join("root");
        symlink(folder.path().join("outside"), root.join("link")).unwrap();
        symlink(".hidden", root.join("shown")).unwrap();
        symlink(folder.path().join("outside"), root.join(".link")).unwrap();
        let files = serving(&root, Dotfiles::Hide);
        assert_eq!(answer(&files, Method::GET, "/link/page").await.2, "outside/page");
        // Whether the file is served depends on the name of the link in the request, not on the
        // name of its target.
        assert_eq!(status(&files, "/shown/page").await, 200);
        assert_eq!(status(&files, "/.link/page").await, 404);
    }
}
