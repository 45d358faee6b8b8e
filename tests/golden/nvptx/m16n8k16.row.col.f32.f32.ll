target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @whole_kernel0(ptr addrspace(1) noalias writeonly align 16 nonnull dereferenceable(512) %D, ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(512) %A, ptr addrspace(1) noalias readonly align 2 nonnull dereferenceable(256) %B, ptr addrspace(1) noalias readonly align 4 nonnull dereferenceable(512) %C) #0 {
entry:
  %t.id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !{i32 0, i32 32}
  %t = zext i32 %t.id to i64
  %.1 = mul i64 %t, 4
  %.2 = mul i64 %t, 8
  %.3 = add i64 %.1, 1
  %.4 = add i64 %.1, 2
  %.5 = add i64 %.1, 3
  %.6.at = getelementptr half, ptr addrspace(1) %A, i64 %.2
  %.6 = load half, ptr addrspace(1) %.6.at, align 2
  %.7 = add i64 %.2, 1
  %.8.at = getelementptr half, ptr addrspace(1) %A, i64 %.7
  %.8 = load half, ptr addrspace(1) %.8.at, align 2
  %.9 = add i64 %.2, 2
  %.10.at = getelementptr half, ptr addrspace(1) %A, i64 %.9
  %.10 = load half, ptr addrspace(1) %.10.at, align 2
  %.11 = add i64 %.2, 3
  %.12.at = getelementptr half, ptr addrspace(1) %A, i64 %.11
  %.12 = load half, ptr addrspace(1) %.12.at, align 2
  %.13 = add i64 %.2, 4
  %.14.at = getelementptr half, ptr addrspace(1) %A, i64 %.13
  %.14 = load half, ptr addrspace(1) %.14.at, align 2
  %.15 = add i64 %.2, 5
  %.16.at = getelementptr half, ptr addrspace(1) %A, i64 %.15
  %.16 = load half, ptr addrspace(1) %.16.at, align 2
  %.17 = add i64 %.2, 6
  %.18.at = getelementptr half, ptr addrspace(1) %A, i64 %.17
  %.18 = load half, ptr addrspace(1) %.18.at, align 2
  %.19 = add i64 %.2, 7
  %.20.at = getelementptr half, ptr addrspace(1) %A, i64 %.19
  %.20 = load half, ptr addrspace(1) %.20.at, align 2
  %.21.0 = insertelement <2 x half> poison, half %.6, i64 0
  %.21.1 = insertelement <2 x half> %.21.0, half %.8, i64 1
  %.21 = bitcast <2 x half> %.21.1 to <2 x half>
  %.22.0 = insertelement <2 x half> poison, half %.10, i64 0
  %.22.1 = insertelement <2 x half> %.22.0, half %.12, i64 1
  %.22 = bitcast <2 x half> %.22.1 to <2 x half>
  %.23.0 = insertelement <2 x half> poison, half %.14, i64 0
  %.23.1 = insertelement <2 x half> %.23.0, half %.16, i64 1
  %.23 = bitcast <2 x half> %.23.1 to <2 x half>
  %.24.0 = insertelement <2 x half> poison, half %.18, i64 0
  %.24.1 = insertelement <2 x half> %.24.0, half %.20, i64 1
  %.24 = bitcast <2 x half> %.24.1 to <2 x half>
  %.25.at = getelementptr half, ptr addrspace(1) %B, i64 %.1
  %.25 = load half, ptr addrspace(1) %.25.at, align 2
  %.26.at = getelementptr half, ptr addrspace(1) %B, i64 %.3
  %.26 = load half, ptr addrspace(1) %.26.at, align 2
  %.27.at = getelementptr half, ptr addrspace(1) %B, i64 %.4
  %.27 = load half, ptr addrspace(1) %.27.at, align 2
  %.28.at = getelementptr half, ptr addrspace(1) %B, i64 %.5
  %.28 = load half, ptr addrspace(1) %.28.at, align 2
  %.29.0 = insertelement <2 x half> poison, half %.25, i64 0
  %.29.1 = insertelement <2 x half> %.29.0, half %.26, i64 1
  %.29 = bitcast <2 x half> %.29.1 to <2 x half>
  %.30.0 = insertelement <2 x half> poison, half %.27, i64 0
  %.30.1 = insertelement <2 x half> %.30.0, half %.28, i64 1
  %.30 = bitcast <2 x half> %.30.1 to <2 x half>
  %.31.at = getelementptr float, ptr addrspace(1) %C, i64 %.1
  %.31 = load float, ptr addrspace(1) %.31.at, align 4
  %.32.at = getelementptr float, ptr addrspace(1) %C, i64 %.3
  %.32 = load float, ptr addrspace(1) %.32.at, align 4
  %.33.at = getelementptr float, ptr addrspace(1) %C, i64 %.4
  %.33 = load float, ptr addrspace(1) %.33.at, align 4
  %.34.at = getelementptr float, ptr addrspace(1) %C, i64 %.5
  %.34 = load float, ptr addrspace(1) %.34.at, align 4
  %.35.all = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %.21, <2 x half> %.22, <2 x half> %.23, <2 x half> %.24, <2 x half> %.29, <2 x half> %.30, float %.31, float %.32, float %.33, float %.34)
  %.35.r0 = extractvalue { float, float, float, float } %.35.all, 0
  %.35.b0 = bitcast float %.35.r0 to float
  %.35.v0 = insertelement <4 x float> poison, float %.35.b0, i64 0
  %.35.r1 = extractvalue { float, float, float, float } %.35.all, 1
  %.35.b1 = bitcast float %.35.r1 to float
  %.35.v1 = insertelement <4 x float> %.35.v0, float %.35.b1, i64 1
  %.35.r2 = extractvalue { float, float, float, float } %.35.all, 2
  %.35.b2 = bitcast float %.35.r2 to float
  %.35.v2 = insertelement <4 x float> %.35.v1, float %.35.b2, i64 2
  %.35.r3 = extractvalue { float, float, float, float } %.35.all, 3
  %.35.b3 = bitcast float %.35.r3 to float
  %.35.v3 = insertelement <4 x float> %.35.v2, float %.35.b3, i64 3
  %.35 = bitcast <4 x float> %.35.v3 to <4 x float>
  %.36.at = getelementptr float, ptr addrspace(1) %D, i64 %.1
  store <4 x float> %.35, ptr addrspace(1) %.36.at, align 16
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }

!nvvm.annotations = !{!0}
!0 = !{ptr @whole_kernel0, !"maxntidx", i32 32, !"maxntidy", i32 1, !"maxntidz", i32 1}
