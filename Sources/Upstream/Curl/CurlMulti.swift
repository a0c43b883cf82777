// One libcurl multi handle driven by the event loop: its sockets in the loop's epoll, its timeout
// as one timer.
import CCurl
import DequeModule
import Glibc
import Posix
import Reactor

/// Owns the handle and its connections (libcurl-multi(3), curl_multi_socket_action(3)).
///
/// Sockets with nothing but more of a body wait for the end of the round, and are then read in
/// limited turns: a new request, and a head that a player waits for, are never delayed by more than
/// one turn, however many bodies arrive.
final class CurlMulti {
    struct Ended {
        let handle: UnsafeMutableRawPointer
        let code: CURLcode
    }

    private let handle: UnsafeMutableRawPointer
    private let loop: EventLoop
    private weak var owner: UpstreamClient?
    private var watches: [CInt: SocketWatch] = [:]
    private var timer: TimerID?
    /// Sockets with body bytes, in the order in which they became ready.
    private var bulk: Deque<SocketWatch> = []
    private var willTakeBulk = false
    /// After a read of this many bytes the socket probably has more.
    private let fullRead: Int64
    /// The most bytes that one socket is read in its turn.
    private static let mostInARow: Int64 = 256 << 10

    /// How long bodies are read before other events are handled.
    private static let turn = Interval(nanoseconds: 500_000)

    /// `curl_global_init` is not safe beside other threads, so it is called once, lazily.
    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

    /// Nil when libcurl cannot start.
    init?(for owner: UpstreamClient) {
        guard Self.isLibraryReady, let made = curl_multi_init() else { return nil }
        handle = made
        loop = owner.loop
        self.owner = owner
        fullRead = Int64(owner.configuration.receiveBuffer / 2)
        set(CURLMOPT_PIPELINING, 2)  // CURLPIPE_MULTIPLEX
        keepIdle(owner.configuration.idleConnections)
        let context = Unmanaged.passUnretained(self).toOpaque()
        sluice_curl_multi_set_socket(handle, socketChanged, context)
        sluice_curl_multi_set_timer(handle, timerChanged, context)
    }

    deinit {
        // The callbacks must not see a partly destroyed object.
        set(CURLMOPT_SOCKETFUNCTION, 0)
        set(CURLMOPT_TIMERFUNCTION, 0)
        if let timer { loop.cancel(timer) }
        for watch in watches.values { watch.end(on: loop) }
        curl_multi_cleanup(handle)
    }

    private func set(_ option: CURLMoption, _ value: Int) {
        _ = sluice_curl_multi_set_long(handle, option, value)
    }

    /// Sets how many idle connections are kept for reuse.
    func keepIdle(_ count: Int) { set(CURLMOPT_MAXCONNECTS, count) }

    /// Adds a transfer; it begins in the next round.
    func add(_ easy: CurlEasy) {
        owner?.curlWillRun()
        let code = curl_multi_add_handle(handle, easy.handle)
        precondition(code == CURLM_OK, "libcurl took no transfer: \(code.rawValue)")
        owner?.curlDidRun(ended: [])
    }

    /// Removes a transfer, closing its connection if that is not reusable.
    func remove(_ easy: CurlEasy) {
        owner?.curlWillRun()
        curl_multi_remove_handle(handle, easy.handle)
        owner?.curlDidRun(ended: [])
    }

    /// Sets what is paused (curl_easy_pause(3)); buffered bytes are delivered from inside this
    /// call.
    ///
    /// - Returns: false if the transfer has no connection any more: buffered bytes stay buffered.
    @discardableResult
    func pause(_ easy: CurlEasy, receiving: Bool, sending: Bool) -> Bool {
        owner?.curlWillRun()
        defer { owner?.curlDidRun(ended: []) }
        // CURLPAUSE_RECV and CURLPAUSE_SEND
        let code = curl_easy_pause(easy.handle, (receiving ? 1 : 0) | (sending ? 4 : 0))
        return code != CURLE_BAD_FUNCTION_ARGUMENT
    }

    /// Lets libcurl act on a socket, or on its timeout if `socket` is -1 (CURL_SOCKET_TIMEOUT).
    fileprivate func act(on socket: CInt, events: CInt) {
        owner?.curlWillRun()
        var running: CInt = 0
        curl_multi_socket_action(handle, socket, events, &running)
        var ended: [Ended] = []
        var left: CInt = 0
        while let message = curl_multi_info_read(handle, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
                continue
            }
            ended.append(Ended(handle: easy, code: sluice_curl_message_result(message)))
        }
        owner?.curlDidRun(ended: ended)
    }

    /// True if a ready socket is deferred to the end of the round.
    fileprivate func putsOff(_ watch: SocketWatch) -> Bool {
        guard let easy = watch.easy, owner?.bulkBytes(of: easy) != nil else { return false }
        bulk.append(watch)
        setNeedsBulk()
        return true
    }

    private func setNeedsBulk() {
        guard !willTakeBulk else { return }
        willTakeBulk = true
        loop.atRoundEnd { [weak self] _ in self?.takeBulk() }
    }

    private func takeBulk() {
        willTakeBulk = false
        let end = Monotonic.now() + Self.turn
        repeat {
            guard let watch = bulk.popFirst() else { break }
            take(watch)
        } while Monotonic.now() < end
        owner?.curlDidTakeBulk()
        if !bulk.isEmpty { setNeedsBulk() }
    }

    /// Reads again, a few times, while reads fill the buffer: writing and waking readers costs less
    /// in larger pieces.
    private func take(_ watch: SocketWatch) {
        guard let start = watch.easy.flatMap({ owner?.bulkBytes(of: $0) }) else {
            return watch.act()
        }
        var before = start
        watch.act()
        while let easy = watch.easy, let after = owner?.bulkBytes(of: easy),
            after - before >= fullRead, after - start < Self.mostInARow
        {
            before = after
            watch.act(again: true)
        }
    }

    fileprivate func setTimer(milliseconds: Int) {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard milliseconds >= 0 else { return }
        timer = loop.schedule(after: .milliseconds(Int64(milliseconds))) { [weak self] _ in
            self?.timer = nil
            self?.act(on: -1, events: 0)
        }
    }

    fileprivate func watch(
        _ socket: CInt, for interest: Readiness, easy: UnsafeMutableRawPointer?
    ) {
        if let known = watches[socket], known.update(for: interest, on: loop) {
            known.easy = easy
            return
        }
        watches.removeValue(forKey: socket)?.end(on: loop)
        let watch = SocketWatch(socket: socket, multi: self)
        watch.easy = easy
        do throws(SystemError) {
            try watch.begin(for: interest, on: loop)
            watches[socket] = watch
        } catch {
            if let easy { owner?.curlCannotWatch(easy, error) }
        }
    }

    fileprivate func unwatch(_ socket: CInt) {
        watches.removeValue(forKey: socket)?.end(on: loop)
    }
}

/// One of libcurl's sockets in the loop's epoll.
private final class SocketWatch: ReadinessHandler {
    private let socket: CInt
    private weak var multi: CurlMulti?
    private var registration: Registration?
    /// The transfer that it was last watched for.
    var easy: UnsafeMutableRawPointer?
    /// Events that libcurl was not told of yet.
    private var events: CInt = 0
    private var isPutOff = false

    init(socket: CInt, multi: CurlMulti) {
        self.socket = socket
        self.multi = multi
    }

    func begin(for interest: Readiness, on loop: EventLoop) throws(SystemError) {
        registration = try loop.watch(socket, for: interest, handler: self)
    }

    /// Updates the registration; returns false if the descriptor now belongs to another socket,
    /// which must be watched anew.
    func update(for interest: Readiness, on loop: EventLoop) -> Bool {
        guard let registration else { return false }
        do throws(SystemError) {
            try loop.update(registration, for: interest)
            return true
        } catch {
            return false
        }
    }

    func end(on loop: EventLoop) {
        if let registration { loop.cancel(registration) }
        registration = nil
    }

    func ready(_ readiness: Readiness, on loop: EventLoop) {
        if !readiness.isDisjoint(with: Readiness.input.union(.hangUp)) { events |= 1 }
        if readiness.contains(.writable) { events |= 2 }
        if readiness.contains(.error) { events |= 4 }
        guard !isPutOff, let multi else { return }
        isPutOff = events == 1 && multi.putsOff(self)
        if !isPutOff { act() }
    }

    /// Lets libcurl act on the socket, unless it is not watched any more.
    ///
    /// `again` means that there is probably more to read.
    func act(again: Bool = false) {
        let found = again ? events | 1 : events
        events = 0
        isPutOff = false
        guard registration != nil, found != 0 else { return }
        multi?.act(on: socket, events: found)
    }
}

/// CURLMOPT_SOCKETFUNCTION.
private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ what: CInt,
    _ context: UnsafeMutableRawPointer?, _ unused: UnsafeMutableRawPointer?
) -> CInt {
    guard let context else { return -1 }
    let multi = Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
    switch what {
    case 1: multi.watch(socket, for: .readable, easy: easy)
    case 2: multi.watch(socket, for: .writable, easy: easy)
    case 3: multi.watch(socket, for: [.readable, .writable], easy: easy)
    default: multi.unwatch(socket)
    }
    return 0
}

/// CURLMOPT_TIMERFUNCTION.
private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> CInt {
    guard let context else { return -1 }
    Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
        .setTimer(milliseconds: milliseconds)
    return 0
}
