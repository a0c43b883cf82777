// The TLS state of one loop: the context of new sessions, and buffers that all sessions share.
import Posix
import TLS

/// The TLS state of one loop.
final class LoopSecurity {
    /// The context that sessions of new connections are created from.
    var context: TLSContext
    /// A buffer for received ciphertext, and for file content before it is encrypted.
    let scratch = UnsafeMutableRawBufferPointer.allocate(
        byteCount: TLSSession.mostPlaintext, alignment: 64)
    private let output = TLSOutput()

    init(_ context: TLSContext) { self.context = context }

    deinit { scratch.deallocate() }

    func makeSession() -> TLSSession? { context.makeSession(output: output) }

    /// Encrypts and sends a range of a file; blocks only on the disk.
    func sendFile(
        _ file: CInt, offset: Int64, count: Int, to number: CInt, through tls: TLSSession
    ) -> SendFileOutcome {
        if tls.hasUnsent {
            switch tls.flush(to: number) {
            case .bytes: break
            case .wouldBlock: return .wouldBlock
            case .closed: return .closed
            }
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(count))
        do throws(SystemError) {
            let read = try readOnce(into: room, from: file, at: offset)
            guard read > 0 else { return .fileFailed(errno: 0) }
            switch tls.send(UnsafeRawBufferPointer(rebasing: room[..<read]), to: number) {
            case .bytes(let sent): return .bytes(sent)
            case .wouldBlock: return .wouldBlock
            case .closed: return .closed
            }
        } catch {
            return .fileFailed(errno: error.code)
        }
    }
}
