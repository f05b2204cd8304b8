namespace KernelTls.Tool.Readers;

/// <summary>Specifies the state of the kernel's tls module.</summary>
internal enum TlsModuleState
{
    /// <summary>The module is loaded.</summary>
    Loaded,

    /// <summary>The module is part of the kernel's image.</summary>
    BuiltIn,

    /// <summary>The module is on disk but not loaded.</summary>
    Loadable,

    /// <summary>This kernel's modules are installed, and tls is not among them.</summary>
    Absent,

    /// <summary>
    /// The module is not loaded, and this kernel's modules are not visible, for example in a container.
    /// </summary>
    NotVisible,

    /// <summary>The operating system is not Linux.</summary>
    NotLinux,
}
