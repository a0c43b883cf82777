// What this machine lacks for a connection: a failure of the daemon, which says nothing of the
// origin.
import CCurl
import Glibc

extension UpstreamError {
    /// True for the errno of a machine that has too few descriptors, or too little memory
    /// (socket(2)); not for an address family that it does not have.
    static func isShortage(_ code: CInt) -> Bool {
        switch code {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: true
        default: false
        }
    }

    /// Makes the failure of a transfer for which this machine refused a socket, its registration or
    /// memory, with this errno.
    init(shortage code: CInt, host: String) {
        self.init(.shortage, host: host, detail: String(cString: strerror(code)))
        systemCode = code
        switch code {
        case EMFILE: advice = "raise the daemon's limit of open files (LimitNOFILE, ulimit -Hn)"
        case ENFILE: advice = "raise this machine's limit of open files (fs.file-max)"
        case ENOSPC: advice = "raise this machine's limit of watches (fs.epoll.max_user_watches)"
        case ENOBUFS, ENOMEM: advice = "check the memory of this machine"
        default: break
        }
    }

    /// Makes the failure of a transfer whose name libcurl could not begin to look up.
    init(withoutLookupOf host: String) {
        self.init(
            .shortage, host: host, detail: "there is no thread or socket to look its name up with")
        advice =
            "raise the daemon's limits of threads and open files (TasksMax, LimitNOFILE, ulimit)"
    }
}

extension Transfer {
    /// Records the errno of a refused socket.
    func note(refusedSocket code: CInt) {
        if UpstreamError.isShortage(code) { hopState.shortage = code }
    }

    /// Returns the failure for a libcurl error that this machine caused; otherwise nil.
    ///
    /// libcurl reports it as a host that accepts no connection, or whose name is not known.
    func shortageFailure(for code: CURLcode) -> UpstreamError? {
        switch code {
        case CURLE_COULDNT_CONNECT where hopState.shortage != 0:
            return UpstreamError(shortage: hopState.shortage, host: host)
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            // The only sign of it: the thread itself, or its pair of sockets, could not be made.
            let said = easy?.failureText ?? ""
            guard said.hasPrefix("getaddrinfo() thread failed") else { return nil }
            return UpstreamError(withoutLookupOf: host)
        default:
            return nil
        }
    }
}
