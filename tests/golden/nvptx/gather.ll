target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @gather(ptr addrspace(1) noalias readonly align 4 %A, ptr addrspace(1) noalias readonly align 4 %I, ptr addrspace(1) noalias writeonly align 4 %B, i64 %rows, i64 %n, i64 %groups) #0 {
entry:
  %g.id = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !range !{i32 0, i32 2147483647}
  %g = zext i32 %g.id to i64
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 32}
  %t = zext i32 %t.id to i64
  %.1 = mul i64 %g, 32
  %.2 = add i64 %.1, %t
  %.3 = mul i64 %n, 8
  %.4 = icmp slt i64 %.2, %.3
  br i1 %.4, label %if.5.then, label %if.5.end
if.5.then:
  %.6 = ashr i64 %.2, 3
  %.7.at = getelementptr i32, ptr addrspace(1) %I, i64 %.6
  %.7 = load i32, ptr addrspace(1) %.7.at, align 4
  %.8 = sext i32 %.7 to i64
  %.9 = icmp sle i64 0, %.8
  %.10 = icmp slt i64 %.8, %rows
  %.11 = and i1 %.9, %.10
  br i1 %.11, label %choose.12.then, label %choose.12.else
choose.12.then:
  %.13 = mul i64 %.8, 8
  %.14 = and i64 %.2, 7
  %.15 = add i64 %.13, %.14
  %.16.at = getelementptr float, ptr addrspace(1) %A, i64 %.15
  %.16 = load float, ptr addrspace(1) %.16.at, align 4
  br label %choose.12.then.end
choose.12.then.end:
  br label %choose.12.end
choose.12.else:
  br label %choose.12.else.end
choose.12.else.end:
  br label %choose.12.end
choose.12.end:
  %.17 = phi float [ %.16, %choose.12.then.end ], [ 0x0000000000000000, %choose.12.else.end ]
  %.18.at = getelementptr float, ptr addrspace(1) %B, i64 %.2
  store float %.17, ptr addrspace(1) %.18.at, align 4
  br label %if.5.end
if.5.end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @gather, !"maxntidx", i32 32, !"maxntidy", i32 1, !"maxntidz", i32 1}
