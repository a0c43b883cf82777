// The cache folder disappears from its path while the daemon uses it.
import CSimulation
import Glibc

extension Scenario {
    /// Takes the folder away while players go on, and brings it back or makes an empty one: no request
    /// fails, and afterwards files are stored as before.
    func runGone() {
        let (cache, away) = (daemon.cacheFolder, daemon.cacheFolder + "-elsewhere")
        let before = addGoneFiles("before")
        fetchAll(before.map(\.path), oracle: .answered)
        guard world.failure == nil else { return }
        world.note("disk: the cache folder is gone")
        world.mark("folder gone")
        rename(cache, away)
        (world.isDiskBad, world.lastDiskFault) = (true, world.now)
        // The first file that cannot be stored tells the daemon.
        fetchAll((before + addGoneFiles("meanwhile")).map(\.path), oracle: .answered)
        world.run(for: random.seconds(1...20))
        let isBack = random.chance(50)
        world.note("disk: the folder is \(isBack ? "back" : "empty")")
        if isBack { rename(away, cache) } else { mkdir(cache, 0o700) }
        (world.isDiskBad, world.lastDiskFault) = (false, world.now)
        world.run(for: 5 * World.second)
        let after = addGoneFiles("after") + (isBack ? before : [])
        fetchAll(after.map(\.path), oracle: .answered)
        // What was written a minute ago also survives the end of the process.
        world.run(for: 60 * World.second)
        playWithoutOrigin(after)
        manager.crash()
        playWithoutOrigin(after)
        if !isBack { removeTree(away) }
    }

    private func addGoneFiles(_ name: String) -> [OriginFile] {
        (0..<3).map { number in
            let file = OriginFile(
                "/scenes/\(name)\(number).ts", size: 2_000 + 70_000 * number,
                isChunked: number == 1, control: "max-age=86400")
            cdn.add(file)
            return file
        }
    }

    private func playWithoutOrigin(_ files: [OriginFile]) {
        guard world.failure == nil else { return }
        cdn.beginOutage()
        fetchAll(files.map(\.path), oracle: .offline)
        cdn.endOutage()
    }
}
