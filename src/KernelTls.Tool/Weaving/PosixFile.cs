using System.Buffers.Binary;
using System.ComponentModel;
using System.Runtime.InteropServices;

namespace KernelTls.Tool.Weaving;

/// <summary>What .NET has no operation for: hard links, owners and inodes.</summary>
internal static partial class PosixFile
{
    private const int CurrentDirectory = -100, NoFollow = 0x100;
    private const uint BasicFields = 0x7ff;

    /// <summary>Identifies a file: the device's major and minor number, and the inode.</summary>
    internal readonly record struct Identity(uint Major, uint Minor, ulong Inode);

    /// <summary>Returns the identity of a file.</summary>
    public static Identity IdentityOf(string path)
    {
        ReadOnlySpan<byte> status = Status(path);
        return new Identity(UInt32(status, 136), UInt32(status, 140), BinaryPrimitives.ReadUInt64LittleEndian(status[32..]));
    }

    /// <summary>Gives a file the owner, the group and the permissions of another one.</summary>
    /// <exception cref="IOException">The owner or the group cannot be changed.</exception>
    public static void Resemble(string path, string like)
    {
        const int User = 20, Group = 24;
#pragma warning disable CA1416 // The tool is for Linux.
        File.SetUnixFileMode(path, File.GetUnixFileMode(like));
#pragma warning restore CA1416
        ReadOnlySpan<byte> wanted = Status(like), own = Status(path);
        if ((UInt32(wanted, User) != UInt32(own, User) || UInt32(wanted, Group) != UInt32(own, Group))
            && ChangeOwner(path, UInt32(wanted, User), UInt32(wanted, Group)) != 0)
        {
            throw new IOException($"{path} cannot get the owner of {like}: {LastError()}");
        }
    }

    /// <summary>Keeps a file under another name, where the file system can as the same file, otherwise as a copy.</summary>
    public static void Keep(string path, string name)
    {
        if (Link(path, name) != 0)
        {
            File.Copy(path, name, overwrite: true);
            Resemble(name, path);
        }
    }

    private static unsafe byte[] Status(string path)
    {
        byte[] status = new byte[256];
        fixed (byte* buffer = status)
        {
            return StatX(CurrentDirectory, path, NoFollow, BasicFields, buffer) == 0
                ? status
                : throw new IOException($"{path} cannot be examined: {LastError()}");
        }
    }

    private static uint UInt32(ReadOnlySpan<byte> status, int position) => BinaryPrimitives.ReadUInt32LittleEndian(status[position..]);

    private static string LastError() => new Win32Exception(Marshal.GetLastPInvokeError()).Message;

    [LibraryImport("libc", EntryPoint = "statx", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static unsafe partial int StatX(int directory, string path, int flags, uint fields, byte* buffer);

    [LibraryImport("libc", EntryPoint = "lchown", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int ChangeOwner(string path, uint user, uint group);

    [LibraryImport("libc", EntryPoint = "link", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Link(string path, string name);
}
