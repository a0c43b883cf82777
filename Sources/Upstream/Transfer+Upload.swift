// The body of a request, supplied to libcurl on demand.
import CCurl
import Glibc
import Posix
import Reactor

/// A body that is streamed to the origin.
package struct Upload: Sendable {
    package let pipe: BytePipe
    /// In bytes; nil sends it chunked, or in frames.
    package let length: Int64?
    /// True if the origin is asked whether it accepts the body before that is sent (RFC 9110
    /// section 10.1.1); one that says nothing gets it after a second.
    package let expectsContinue: Bool

    package init(pipe: BytePipe, length: Int64?, expectsContinue: Bool = false) {
        self.pipe = pipe
        self.length = length
        self.expectsContinue = expectsContinue
    }
}

extension CurlEasy {
    /// Streams the request's body (CURLOPT_UPLOAD(3), CURLOPT_READFUNCTION(3)).
    func setUpload(_ upload: Upload, of transfer: Transfer) {
        set(CURLOPT_UPLOAD, flag: true)
        set(CURLOPT_INFILESIZE_LARGE, large: upload.length ?? -1)
        sluice_curl_set_read(
            handle, bytesWanted, Unmanaged.passUnretained(transfer).toOpaque())
    }
}

/// CURLOPT_READFUNCTION: fills the buffer, or reports that there are no bytes now, or no more at
/// all.
private func bytesWanted(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context, let buffer else { return 0x1000_0000 }  // CURL_READFUNC_ABORT
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let room = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
    switch transfer.fill(room) {
    case .filled(let filled): return filled
    case .nothing: return 0x1000_0001  // CURL_READFUNC_PAUSE
    case .broken: return 0x1000_0000
    }
}

extension Transfer {
    /// The result of a read of the request's body.
    fileprivate enum Filled {
        /// 0 at the end.
        case filled(Int)
        case nothing, broken
    }

    fileprivate func fill(_ room: UnsafeMutableRawBufferPointer) -> Filled {
        guard !isFailing, client != nil else { return .broken }
        // The origin has taken bytes, or has room for more.
        hopState.lastByteAt = loop.now
        if uploadChunk.isEmpty {
            switch nextChunk() {
            case .bytes(let bytes): uploadChunk = bytes[...]
            case .wait:
                isUploadPaused = true
                return .nothing
            case .end: return .filled(0)
            case .broken: return .broken
            }
        }
        let count = min(room.count, uploadChunk.count)
        uploadChunk.prefix(count).withUnsafeBytes { room.copyMemory(from: $0) }
        uploadChunk.removeFirst(count)
        return .filled(count)
    }

    private func nextChunk() -> BytePipe.Step {
        guard let upload = request.upload else { return .end }
        let bound = LoopBound(self, to: loop)
        return upload.pipe.take { bound.enqueue { transfer, _ in transfer.resumeUpload() } }
    }

    private func resumeUpload() {
        guard isUploadPaused, state == .running else { return }
        isUploadPaused = false
        hopState.lastByteAt = loop.now
        unpause()
    }

    /// Tells libcurl which directions are paused now.
    func unpause() {
        guard let easy else { return }
        let isTaken = multi?.pause(easy, receiving: isReceivePaused, sending: isUploadPaused)
        // It has ended meanwhile; libcurl still holds its bytes.
        if isTaken == false { isReceivePaused = true }
    }
}
