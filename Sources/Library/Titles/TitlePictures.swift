// Pictures of titles, made of stored media by ffmpeg on a thread of their own.
package import HTTP
package import Posix
import Reactor
package import Routing
import Store
import Synchronization

/// Makes the pictures of titles, one at a time, and keeps the recent ones in memory.
///
/// Reads only what is stored, and never contacts an origin. Can be used from any thread.
package final class TitlePictures: Sendable {
    /// The response to a request for a picture.
    package enum Answer: Sendable, Equatable {
        /// A JPEG file.
        case picture([UInt8])
        case failure(HTTPStatus, String)
    }

    /// What keeps ffmpeg from the daemon's files and the network.
    package enum Confinement: Sendable {
        /// bubblewrap.
        case sandbox
        /// Limits of time and memory only, since bubblewrap is missing.
        case noSandbox
        /// Limits only, since bubblewrap does not work here.
        case brokenSandbox
    }

    /// Returns the path of ffmpeg; called for each picture, so that ffmpeg can be installed while
    /// the daemon runs.
    package typealias FindProgram = @Sendable () -> String?

    /// The most bytes that ffmpeg is given.
    private static let mostInput = 16 << 20
    private static let limits = BoundedProgram.Limits(
        time: .seconds(20 as Int64), output: 200_000, processorSeconds: 5, memory: 1 << 30)

    private let catalogue: TitleCatalogue
    private let findProgram: FindProgram
    private let program: BoundedProgram
    private let thread: RequestThread
    private let stopping: Flag
    /// The sandbox, if it works with the ffmpeg of this path.
    private let sandbox = Mutex<(path: String, sandbox: ProgramSandbox?)?>(nil)
    private let report: @Sendable (Confinement) -> Void
    private let cache = Mutex(PictureCache(mostEntries: 200, mostBytes: 16 << 20))

    private final class Flag: Sendable {
        let isSet = Atomic<Bool>(false)
    }

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - catalogue: the titles.
    ///   - findProgram: returns the path of ffmpeg; nil without one.
    ///   - report: called with the confinement of an ffmpeg before it is used, on the thread for
    ///     pictures.
    /// - Throws: the error of `pthread_create(3)`.
    package init(
        _ catalogue: TitleCatalogue, findProgram: @escaping FindProgram,
        report: @escaping @Sendable (Confinement) -> Void = { _ in }
    ) throws(SystemError) {
        self.catalogue = catalogue
        self.report = report
        self.findProgram = findProgram
        let stopping = Flag()
        self.stopping = stopping
        program = BoundedProgram(Self.limits) { stopping.isSet.load(ordering: .relaxed) }
        thread = try RequestThread(name: "pictures")
        // Tried before the first picture, so that the log tells of it at the start.
        thread.handle.enqueue { [self] _ in
            if let path = findProgram() { _ = sandbox(for: path) }
        }
    }

    /// Returns the sandbox that works with an ffmpeg; tries it once.
    private func sandbox(for path: String) -> ProgramSandbox? {
        if let known = sandbox.withLock({ $0 }), known.path == path { return known.sandbox }
        var found = ProgramSandbox()
        var confinement = Confinement.noSandbox
        if let candidate = found {
            let isUsable = candidate.isUsable([path, "-version"], Self.limits)
            confinement = isUsable ? .sandbox : .brokenSandbox
            if !isUsable { found = nil }
        }
        let result = found
        sandbox.withLock { $0 = (path, result) }
        report(confinement)
        return result
    }

    /// Kills a running ffmpeg and ends the thread; blocks.
    package func stop() {
        stopping.isSet.store(true, ordering: .relaxed)
        thread.stopAndJoin()
    }

    /// Returns the title whose picture a path names: `/api/titles/<number>/picture`; nil for any
    /// other path.
    package static func title(ofPath path: String) -> SessionID? {
        let (start, end) = ("/api/titles/", "/picture")
        guard path.hasPrefix(start), path.hasSuffix(end),
            path.utf8.count == start.utf8.count + 12 + end.utf8.count
        else { return nil }
        return SessionID(text: String(path.dropFirst(start.count).dropLast(end.count)))
    }

    /// The response while pictures are off.
    package static let off = Answer.failure(
        .notFound, "pictures of titles are off; --title-pictures on turns them on")

    /// Makes or finds a picture; `done` is called once, on the thread for pictures, or immediately
    /// if the request is rejected.
    package func answer(_ title: SessionID, _ done: @escaping @Sendable (Answer) -> Void) {
        thread.answer(
            { [self] in answer(title) },
            refusing: { refusal -> Answer in
                switch refusal {
                case .tooManyWait:
                    .failure(.serviceUnavailable, "too many pictures are waited for; ask later")
                case .hasEnded: Self.stopped
                }
            }, done)
    }

    private static let stopped = Answer.failure(.serviceUnavailable, "the daemon is stopping")

    private func answer(_ title: SessionID) -> Answer {
        if stopping.isSet.load(ordering: .relaxed) { return Self.stopped }
        // The sources are read each time, so that the picture of a purged title is gone with it.
        guard let sources = catalogue.pictureSources(of: title, most: Self.mostInput) else {
            cache.withLock { $0.remove(title) }
            return .failure(.notFound, "no title \(title.text) is kept")
        }
        guard let first = sources.first else {
            cache.withLock { $0.remove(title) }
            return .failure(
                .notFound, "no video of title \(title.text) is kept that can be read without keys")
        }
        let known = cache.withLock { $0.result(for: title, of: first.name, now: .now()) }
        let result = known ?? make(sources)
        if known == nil, !stopping.isSet.load(ordering: .relaxed) {
            cache.withLock { $0.keep(result, for: title, of: first.name, now: .now()) }
        }
        switch result {
        case .picture(let bytes): return .picture(bytes)
        case .none(let reason): return .failure(.notFound, reason)
        }
    }

    private func make(_ sources: [PictureSource]) -> PictureResult {
        guard let path = findProgram() else {
            return .none("no ffmpeg is found in PATH, and it makes the pictures; install it")
        }
        var reason = ""
        let plain = Self.arguments(path)
        let arguments = sandbox(for: path)?.arguments(plain, Self.limits) ?? plain
        for source in sources {
            do throws(SystemError) {
                let outcome = try program.run(arguments, input: source.bytes)
                switch Self.result(of: outcome) {
                case .picture(let bytes): return .picture(bytes)
                case .none(let why): reason = why
                }
                // Others are decoded as slowly.
                if outcome == .tooSlow || outcome == .cancelled { break }
            } catch {
                return .none("ffmpeg cannot be started: \(error)")
            }
        }
        return .none(reason)
    }

    /// Judges what ffmpeg printed.
    static func result(of outcome: BoundedProgram.Outcome) -> PictureResult {
        switch outcome {
        case .ended(0, let output) where isJPEG(output): .picture(output)
        case .ended(0, _): .none("ffmpeg made no picture of what is kept")
        case .ended(nil, _): .none("a signal ended ffmpeg, or it needed more than it may use")
        case .ended(let status?, _):
            .none("ffmpeg cannot decode what is kept: it ended with status \(status)")
        case .tooSlow: .none("ffmpeg took longer than \(Int(limits.time.inSeconds)) s")
        case .tooMuch: .none("ffmpeg printed more than \(limits.output) bytes")
        case .cancelled: .none("the daemon is stopping")
        }
    }

    /// True for the markers at the start and at the end of a JPEG file (ITU-T T.81 section B.1.1.3:
    /// SOI, EOI).
    private static func isJPEG(_ bytes: [UInt8]) -> Bool {
        bytes.count > 4 && bytes.starts(with: [0xFF, 0xD8, 0xFF])
            && bytes.suffix(2) == [0xFF, 0xD9]
    }

    /// The arguments for one representative frame, 320 pixels wide.
    ///
    /// ffmpeg may read only its standard input, as one of the containers of HLS: input that looks
    /// like a playlist can name no file and no URL.
    private static func arguments(_ path: String) -> [String] {
        [
            path, "-nostdin", "-hide_banner", "-v", "quiet", "-protocol_whitelist", "pipe",
            "-format_whitelist", "mpegts,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm",
            "-threads", "1", "-i", "pipe:0", "-map", "0:v:0",
            "-vf", "scale=320:-2,thumbnail=24", "-frames:v", "1", "-threads", "1",
            "-filter_threads", "1", "-c:v", "mjpeg", "-q:v", "6", "-f", "image2pipe", "pipe:1",
        ]
    }
}
