// Files under a mount that depend on more than their URL: on a language, or on who asks.

/// What a file of this region depends on.
private enum Dependence: Int, CaseIterable {
    /// `Vary: Accept-Language`, fresh for a day.
    case language
    /// As above, to be revalidated at each request.
    case revalidated
    /// Only for the user of a cookie (`private`, `Vary: Cookie`).
    case user
    /// On what no request says (`Vary: *`).
    case anything

    /// The field whose value selects the content.
    var field: String { self == .user ? "Cookie" : "Accept-Language" }

    /// The values that the readers send.
    var values: [String] { self == .user ? ["user=one", "user=two"] : ["de", "en", "fr"] }

    var control: String {
        switch self {
        case .language: "max-age=86400"
        case .revalidated: "no-cache"
        case .user: "private, max-age=600"
        case .anything: "max-age=600"
        }
    }

    var vary: String {
        switch self {
        case .language, .revalidated: "Accept-Language"
        case .user: "Cookie"
        case .anything: "*"
        }
    }
}

/// Files with several contents, and readers that each want one of them.
final class VariedFiles: Addition {
    private let region = VariedRegion()

    required init(_ stage: Stage) {
        stage.cdn.regions.append(region)
        super.init(stage)
    }

    private func reader(_ count: Int) -> VariedReader {
        VariedReader(region, readings: count, stage.checks)
    }

    override func beginRough(until end: Int64) -> [Player] {
        (0..<random.number(1...3)).map { _ in reader(random.number(5...40)) }
    }

    override func beginCalm() -> [Player] {
        let readers = [reader(40), VariedReader(every: region, stage.checks)]
        for reader in readers { world.after(45 * World.second) { reader.start() } }
        return readers
    }

    override func beginOffline() -> [Player] {
        [VariedReader(every: region, stage.checks)]
    }
}

private final class VariedRegion: Region {
    private var files: [String: OriginFile] = [:]

    static let count = 4

    static func path(_ number: Int) -> String { "/varied/f\(number).ts" }

    static func dependence(_ number: Int) -> Dependence {
        Dependence.allCases[number % Dependence.allCases.count]
    }

    /// The file that has the content of a path for a value of its field.
    func content(_ number: Int, _ value: String) -> OriginFile {
        let name = "\(Self.path(number))+\(value)"
        if let known = files[name] { return known }
        var own = Seeded(Seeded.hash(name))
        let made = OriginFile(
            name, size: own.number(1...40_000),
            validator: own.pick([.strong, .strong, .weak, .date, .none]),
            hasRanges: own.chance(60), isChunked: own.chance(30),
            control: Self.dependence(number).control)
        files[name] = made
        return made
    }

    func file(_ path: String) -> OriginFile? { files[path] }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        for number in 0..<Self.count where head.pathOnly == Self.path(number) {
            let dependence = Self.dependence(number)
            let value = head.fields[dependence.field.lowercased()] ?? ""
            var answer = cdn.answer(content(number, value), head)
            answer.fields.append(("Vary", dependence.vary))
            return answer
        }
        return nil
    }
}

/// Reads such files with changing values; each response has to be the one for its value.
private final class VariedReader: Player {
    private let region: VariedRegion
    private var left: [(number: Int, value: String)]

    convenience init(
        _ region: VariedRegion, readings: Int, _ checks: Checks
    ) {
        self.init(region, [], checks)
        left = (0..<readings).map { _ in
            let number = random.number(0...VariedRegion.count - 1)
            return (number, random.pick(VariedRegion.dependence(number).values))
        }
    }

    /// Reads each language of the file that is stored for a day, once.
    convenience init(
        every region: VariedRegion, _ checks: Checks
    ) {
        self.init(region, Dependence.language.values.map { (0, $0) }, checks)
    }

    private init(
        _ region: VariedRegion, _ left: [(number: Int, value: String)], _ checks: Checks
    ) {
        self.region = region
        self.left = left
        super.init("reader of varied files", checks)
    }

    override func start() {
        guard let (number, value) = left.popLast() else { return end() }
        let path = region.content(number, value).path
        fetch(
            "/mt\(VariedRegion.path(number))",
            [(VariedRegion.dependence(number).field, value)],
            // Under a mount a redirect is passed on.
            check: { [checks] response in
                !(301...308).contains(response.status) && checks.media(path, .whole, response)
            },
            then: { [weak self] _ in
                guard let self else { return }
                world.after(random.milliseconds(0...3_000)) { [weak self] in
                    self?.start()
                }
            })
    }
}
