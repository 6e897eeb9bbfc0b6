//! How soon the kernel reports that a client reads.

use tokio::net::TcpListener;

/// How much of what was written to a client may wait in the kernel for its first transmission.
///
/// By default a third of the send buffer, which grows to megabytes, has to come free before a socket can be written to
/// again: a client that reads 50 KB a second would seem to stand still for many seconds. With this it is half of this.
/// More than a common large answer, which would otherwise take two writes and a tenth more CPU.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Makes the connections of a listener writable again soon after their client reads. The kernel copies the setting to each.
pub(crate) fn bound_unsent(listener: &TcpListener) {
    // A kernel without it notices the same later.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT);
    #[cfg(not(target_os = "linux"))]
    let _ = listener;
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::edge::test_peer::soon;

    #[tokio::test]
    async fn a_client_that_reads_a_little_is_seen_to_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        bound_unsent(&listener);
        let client = tokio::net::TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(32 * 1024).unwrap();
        let connecting = client.connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (mut client, (server, _)) = (client.unwrap(), accepted.unwrap());
        let fill = || while server.try_write(&[b'x'; 16 * 1024]).is_ok() {};
        soon(server.writable()).await.unwrap();
        fill();
        for _ in 0..4 {
            // Much less than a third of what the kernel buffers by default.
            soon(client.read_exact(&mut vec![0; 128 * 1024])).await.unwrap();
            soon(server.writable()).await.unwrap();
            fill();
        }
    }
}
