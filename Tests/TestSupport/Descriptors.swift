import Glibc

/// Runs `body` while the process can open only `count` more descriptors.
public func withDescriptors<Result, Trouble: Error>(
    left count: Int, _ body: () throws(Trouble) -> Result
) throws(Trouble) -> Result {
    var taken: [Int32] = []
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    getrlimit(resource, &limit)
    let before = limit
    limit.rlim_cur = min(limit.rlim_max, 1_024)
    setrlimit(resource, &limit)
    while case let descriptor = open("/dev/null", O_RDONLY), descriptor >= 0 { taken.append(descriptor) }
    defer {
        for descriptor in taken { close(descriptor) }
        var before = before
        setrlimit(resource, &before)
    }
    for _ in 0..<count { close(taken.removeLast()) }
    return try body()
}
