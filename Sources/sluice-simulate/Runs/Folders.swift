// Folders of the real file system below which a run keeps its files.
import Glibc

/// The names in a folder, in order.
func names(in folder: String) -> [String] {
    guard let open = opendir(folder) else { return [] }
    defer { closedir(open) }
    var found: [String] = []
    while let entry = readdir(open) {
        let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { found.append(name) }
    }
    return found.sorted()
}

private func isFolder(_ path: String) -> Bool {
    var known = stat()
    return lstat(path, &known) == 0 && known.st_mode & S_IFMT == S_IFDIR
}

/// Copies a folder recursively.
func copyFolder(_ from: String, to: String) {
    _ = mkdir(to, 0o700)
    for name in names(in: from) {
        let (source, target) = ("\(from)/\(name)", "\(to)/\(name)")
        if isFolder(source) {
            copyFolder(source, to: target)
            continue
        }
        let input = open(source, O_RDONLY)
        let output = open(target, O_WRONLY | O_CREAT, 0o600)
        var known = stat()
        fstat(input, &known)
        ftruncate(output, known.st_size)
        // Holes stay holes: the difference between reserved and written space matters.
        var place: off_t = 0
        while place < known.st_size {
            let data = lseek(input, place, 3)
            guard data >= 0 else { break }
            let hole = lseek(input, data, 4)
            var buffer = Array(repeating: UInt8(0), count: Int(hole - data))
            let count = pread(input, &buffer, buffer.count, data)
            pwrite(output, buffer, max(0, count), data)
            place = hole
        }
        let times = [known.st_atim, known.st_mtim]
        futimens(output, times)
        close(input)
        close(output)
    }
}

func removeTree(_ path: String) {
    for name in names(in: path) {
        let inner = "\(path)/\(name)"
        if isFolder(inner) { removeTree(inner) } else { unlink(inner) }
    }
    rmdir(path)
}

/// All files below a folder, with their sizes.
func filesBelow(_ path: String) -> [(path: String, size: Int)] {
    names(in: path).flatMap { name -> [(path: String, size: Int)] in
        let inner = "\(path)/\(name)"
        if isFolder(inner) { return filesBelow(inner) }
        var known = stat()
        return lstat(inner, &known) == 0 ? [(inner, Int(known.st_size))] : []
    }
}
