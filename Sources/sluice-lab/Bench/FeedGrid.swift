// The parameters of a sweep of `sluice-lab bench feed`.

/// The variations of a sweep: each parameter alone, and jointly those that share the link's time.
enum FeedGrid {
    private static let axes: [(name: String, values: [String])] = [
        ("ahead", ["1", "2", "4", "8", "12"]), ("behind", ["0", "2", "3"]),
        ("deep", ["0", "1", "2", "6"]),
        ("startBytes", ["0", "60000", "80000", "150000", "200000"]),
        ("headBytes", ["100000", "400000"]), ("headSeconds", ["0", "2", "3", "8"]),
        ("activeSeconds", ["4", "8", "16", "1e9"]), ("secureSeconds", ["0", "2", "6", "8"]),
        ("startSecureSeconds", ["0", "1", "4"]), ("settleSeconds", ["0", "0.4", "1.2", "2"]),
        ("parallel", ["1", "2", "3", "4", "5", "8", "12"]), ("parallelOfItem", ["2", "3"]),
        ("activeFirst", ["1"]),
    ]

    static var names: [String] {
        let single = axes.flatMap { axis in axis.values.map { "default,\(axis.name)=\($0)" } }
        let together = ["4", "6", "8", "12"].flatMap { ahead in
            ["2", "4", "8"].flatMap { parallel in
                ["1", "2"].map {
                    "default,ahead=\(ahead),costBudget=20,parallel=\(parallel),parallelOfItem=\($0)"
                }
            }
        }
        return single + together
    }
}
