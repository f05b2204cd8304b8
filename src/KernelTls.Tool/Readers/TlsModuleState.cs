namespace KernelTls.Tool.Readers;

/// <summary>Where the kernel's tls module is.</summary>
internal enum TlsModuleState
{
    /// <summary>Loaded as a module.</summary>
    Loaded,

    /// <summary>Part of the kernel's image.</summary>
    BuiltIn,

    /// <summary>On disk, not loaded.</summary>
    Loadable,

    /// <summary>This kernel's modules are here, and tls is not among them.</summary>
    Absent,

    /// <summary>Not loaded, and this kernel's modules cannot be seen from here: a container, or a kernel from elsewhere.</summary>
    NotVisible,

    /// <summary>Not Linux.</summary>
    NotLinux,
}
