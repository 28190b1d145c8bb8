/// Work waits in lines, one for each tenant. A tenant's line has the tenant's id.
public enum WorkLine {
    /// The line of the server's own work, such as a backup. No tenant has such an id: that of the default pool is
    /// empty, and the others have no parentheses.
    public static let server: Text = "(server)"
}
